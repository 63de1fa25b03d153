-- Up Migration
-- Circuits and links as the fabric API lists them.

create view circuit_view as
select id, client_id, ''::text as service, ''::text as terminator, router_ids, '{}'::text[] as link_ids,
       '{}'::jsonb as tags, false as is_system, created_at, created_at as updated_at
  from circuit;

create view link_view as
select ''::text collate "C" as id, ''::text as protocol, ''::text as dial_address, ''::text as source_router,
       ''::text as dest_router, ''::text as state, false as down, 0 as static_cost, 0::bigint as source_latency,
       0::bigint as dest_latency, 0::bigint as cost, 0 as iteration, '{}'::jsonb as tags, false as is_system,
       now() as created_at, now() as updated_at
 where false;
