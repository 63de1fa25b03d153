-- Up Migration
-- Sessions end when the auth policy no longer allows the method that opened them.

alter table api_session add column method text
  constraint api_session_method_is_known check (method in ('updb', 'cert'));
update api_session s
   set method = case when ca_id is not null then 'cert'
                     else (select method from authenticator a where a.id = s.authenticator_id) end;
comment on column api_session.method is 'of the authenticator that opened it; null: opened before this column existed';

alter table auth_policy add column ends_sessions boolean not null default false;
comment on column auth_policy.ends_sessions is 'true: it allows less than before, and sessions may remain that it no longer allows';
