-- Up Migration
-- Changes of other schemas that can remove access. A create compares its authorization with them; a sweep asks policy
-- about the live sessions in their scope.

create table revocation (
  id          bigint         generated always as identity primary key,
  schema      text           not null,
  timeline    uuid           not null,
  number      bigint         not null,
  kind        text           not null,
  entity_id   text           collate "C" not null,
  is_pending  boolean        not null,
  is_large    boolean        not null default false,
  swept_to    text           collate "C" not null default '',
  recorded_at timestamptz(3) not null default now(),
  constraint revocation_kind_is_known
       check (kind in ('everything', 'identity', 'api-session', 'service', 'policy', 'posture-check'))
);
create index revocation_scope on revocation (kind, entity_id, number);
create index revocation_pending on revocation (id) where is_pending;
comment on column revocation.entity_id is 'whose sessions; empty: all';
comment on column revocation.is_large is 'too many sessions for one page';
comment on column revocation.swept_to is 'progress of a large sweep: the last session that policy was asked about';

alter table session add granting_policy_id text collate "C" not null default '?';
comment on column session.granting_policy_id is
  'one policy that grants it; empty: none, the identity is an admin; ?: not determined yet';

-- A sweep reads the sessions of one scope in the order of ids.
drop index session_service;
drop index session_identity;
create index session_service on session (service_id, id);
create index session_identity on session (identity_id, id);
create index session_granting_policy on session (granting_policy_id, id);

-- Inserts the sessions whose authorization holds: no change of their scopes has been followed past its positions.
-- Each statement has a snapshot of its own, so the second one sees what was committed while the first one waited.
create function make_sessions(wanted jsonb)
returns table (ord int, is_authorized boolean, created_at timestamptz) language plpgsql as $$
#variable_conflict use_column
begin
  perform from followed where schema in ('identity', 'policy') order by schema for share;
  return query
    with request as (
         select * from rows from (jsonb_to_recordset(wanted) as (
                id text, token text, type text, api_session_id text, service_id text, identity_id text,
                service_policies text[], tags jsonb, identity_timeline uuid, identity_number bigint,
                policy_timeline uuid, policy_number bigint)) with ordinality as list (
                id, token, type, api_session_id, service_id, identity_id, service_policies, tags,
                identity_timeline, identity_number, policy_timeline, policy_number, ord)),
         authorized as (
         select * from request
          where exists (select from followed where schema = 'identity' and timeline = identity_timeline)
            and exists (select from followed where schema = 'policy' and timeline = policy_timeline)
            and not exists (
                select from unnest(array['everything', 'identity', 'api-session'],
                                   array['', identity_id, api_session_id]) as scope (kind, entity_id)
                  join revocation using (kind, entity_id)
                 where schema = 'identity' and timeline = identity_timeline and number > identity_number)
            and not exists (
                select from unnest(array['everything', 'identity', 'service', 'policy'],
                                   array['', identity_id, service_id, coalesce(service_policies[1], '')])
                         as scope (kind, entity_id)
                  join revocation using (kind, entity_id)
                 where schema = 'policy' and timeline = policy_timeline and number > policy_number)),
         made as (
         insert into session
                (id, token, type, api_session_id, service_id, identity_id, service_policies, granting_policy_id, tags)
         select id, token, type, api_session_id, service_id, identity_id, service_policies,
                coalesce(service_policies[1], '?'), tags
           from authorized
             on conflict on constraint session_is_one_of_its_sort do nothing
      returning id, created_at)
    select request.ord::int - 1, authorized.id is not null, made.created_at::timestamptz
      from request left join authorized using (ord) left join made on made.id = request.id;
end $$;
