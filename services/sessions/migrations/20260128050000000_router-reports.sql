-- Up Migration
-- What routers of 2.x report: their network interfaces, and the connections that each link consists of.

create table router_interfaces (
  router_id  text  collate "C" primary key
             constraint router_interfaces_router_is_known references router on delete cascade,
  interfaces jsonb not null
);

alter table link add column connections jsonb not null default '[]';
alter table link add column connections_order bigint[] not null default '{0,0}';
comment on column link.connections_order is 'iteration of the link and of its state; newer ones replace older ones';

create or replace view link_view as
select id, protocol, dial_address, source_id as source_router, destination_id as dest_router,
       (case when is_confirmed then 'Connected' else 'Pending' end) collate "C" as state, is_down as down, static_cost,
       (source_latency_ms * 1000000)::bigint as source_latency,
       (destination_latency_ms * 1000000)::bigint as dest_latency,
       static_cost + floor(source_latency_ms)::bigint + floor(destination_latency_ms)::bigint as cost, iteration,
       '{}'::jsonb as tags, false as is_system, created_at, updated_at, connections
  from link;
