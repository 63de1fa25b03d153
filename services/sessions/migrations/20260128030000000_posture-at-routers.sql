-- Up Migration
-- Sessions of clients that report their device to routers: these evaluate its posture checks, and no others carry the session.

alter table session add column posture_at_routers boolean not null default false;

create or replace function make_sessions(wanted jsonb)
returns table (ord int, is_authorized boolean, created_at timestamptz) language plpgsql as $$
#variable_conflict use_column
begin
  perform from followed where schema in ('identity', 'policy') order by schema for share;
  return query
    with request as (
         select * from rows from (jsonb_to_recordset(wanted) as (
                id text, token text, type text, api_session_id text, service_id text, identity_id text,
                service_policies text[], tags jsonb, posture_at_routers boolean, identity_timeline uuid,
                identity_number bigint, policy_timeline uuid, policy_number bigint)) with ordinality as list (
                id, token, type, api_session_id, service_id, identity_id, service_policies, tags, posture_at_routers,
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
                (id, token, type, api_session_id, service_id, identity_id, service_policies, granting_policy_id, tags,
                 posture_at_routers)
         select id, token, type, api_session_id, service_id, identity_id, service_policies,
                coalesce(service_policies[1], '?'), tags, coalesce(posture_at_routers, false)
           from authorized
             on conflict on constraint session_is_one_of_its_sort do nothing
      returning id, created_at)
    select request.ord::int - 1, authorized.id is not null, made.created_at::timestamptz
      from request left join authorized using (ord) left join made on made.id = request.id;
end $$;
