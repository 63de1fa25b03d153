-- Up Migration
-- Links as the fabric API lists them. Latencies are in nanoseconds.

drop view link_view;
create view link_view as
select id, protocol, dial_address, source_id as source_router, destination_id as dest_router,
       'Connected' collate "C" as state, is_down as down, static_cost,
       (source_latency_ms * 1000000)::bigint as source_latency,
       (destination_latency_ms * 1000000)::bigint as dest_latency,
       static_cost + floor(source_latency_ms)::bigint + floor(destination_latency_ms)::bigint as cost, iteration,
       '{}'::jsonb as tags, false as is_system, created_at, updated_at
  from link;
