-- Up Migration
-- Creates are frequent: one call inserts all that wait in a replica, with audit and change rows. The counter is updated
-- last, because its lock blocks all other writers of this schema until the commit.

create function create_identities(entries jsonb)
returns table (made_id text, made_at timestamptz, made_number bigint, made_timeline uuid, told_at timestamptz)
language plpgsql as $$
#variable_conflict use_column
declare
  accepted text[];
  next     record;
begin
  with made as (
    insert into identity (id, name, type, is_admin, role_attributes, external_id, auth_policy_id, app_data,
                          default_hosting_cost, default_hosting_precedence, service_hosting_costs,
                          service_hosting_precedences, enrollment, tags)
    select e.id, e.name, e.type, e.is_admin, e.role_attributes, e.external_id, e.auth_policy_id, e.app_data,
           e.default_hosting_cost, e.default_hosting_precedence, e.service_hosting_costs,
           e.service_hosting_precedences, e.enrollment, e.tags
      from jsonb_to_recordset(entries) as e (
             id text, name text, type text, is_admin boolean, role_attributes text[], external_id text,
             auth_policy_id text, app_data jsonb, default_hosting_cost integer, default_hosting_precedence text,
             service_hosting_costs jsonb, service_hosting_precedences jsonb, enrollment jsonb, tags jsonb)
      join auth_policy on auth_policy.id = e.auth_policy_id
        on conflict do nothing
    returning id)
  select array_agg(id) into accepted from made;
  if accepted is null then
    return;
  end if;

  select * into next from advance(cardinality(accepted));

  return query
  with made as (
       select i.id, i.created_at, e.plain, e.told, e.request_id, e.caller,
              next.number - cardinality(accepted) + row_number() over (order by e.ord) as number,
              jsonb_build_object('createdAt', t.text, 'updatedAt', t.text) as times
         from jsonb_to_recordset(entries) as e (
                ord integer, id text, plain jsonb, told jsonb, request_id text, caller text)
         join identity i on i.id = e.id
        cross join lateral (
              select to_char(i.created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as text) t
        where e.id = any (accepted)),
       audited as (
       insert into audit (number, request_id, identity_id, kind, entity_id, before, after)
       select number, request_id, caller, 'identities', id, null, plain || times from made),
       changed as (
       insert into change (number, kind, entity_id, entity, at)
       select number, 'identities', id, plain || told || times, next.at from made)
  select id, created_at, number, next.timeline, next.at from made order by number;
end
$$;
