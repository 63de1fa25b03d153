-- Up Migration
-- Links that both routers have reported. Replicas of the former release store links without asking.

alter table link add column is_confirmed boolean not null default true;
comment on column link.is_confirmed is 'its destination has reported it, or has accepted a link of its source';

create table link_acceptance (
  listener_id text collate "C" not null
              constraint link_acceptance_listener_is_known references router on delete cascade,
  dialer_id   text collate "C" not null
              constraint link_acceptance_dialer_is_known references router on delete cascade,
  constraint link_acceptance_is_one_of_both primary key (listener_id, dialer_id)
);
comment on table link_acceptance is 'routers that have had a link of another verified';
create index link_acceptance_dialer on link_acceptance (dialer_id);

insert into link_acceptance
select distinct destination_id, source_id from link
  join router as listener on listener.id = destination_id join router as dialer on dialer.id = source_id;

create or replace view link_view as
select id, protocol, dial_address, source_id as source_router, destination_id as dest_router,
       (case when is_confirmed then 'Connected' else 'Pending' end) collate "C" as state, is_down as down, static_cost,
       (source_latency_ms * 1000000)::bigint as source_latency,
       (destination_latency_ms * 1000000)::bigint as dest_latency,
       static_cost + floor(source_latency_ms)::bigint + floor(destination_latency_ms)::bigint as cost, iteration,
       '{}'::jsonb as tags, false as is_system, created_at, updated_at
  from link;
