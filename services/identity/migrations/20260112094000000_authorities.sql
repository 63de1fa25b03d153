-- Up Migration
-- Copies of third parties' authorities, as far as identities depend on them.

create table known_ca (
  id  text  collate "C" primary key,
  row jsonb not null
);
comment on table known_ca is 'a copy that follows the changes of schema pki; who relies on one of them locks its row';

alter table authenticator add column ca_id text collate "C";
create index authenticator_by_ca on authenticator (ca_id);
comment on column authenticator.ca_id is 'whose certificate it is, if it is not our own';

alter table api_session add column ca_id text collate "C";
create index api_session_by_ca on api_session (ca_id) where ca_id is not null;
comment on column api_session.ca_id is 'who vouches for the session in place of an authenticator';
