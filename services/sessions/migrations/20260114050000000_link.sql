-- Up Migration
-- Links between routers. Routers build them and report them; every replica has all of them in memory.

create sequence link_version;

create table link (
  id                     text             collate "C" primary key,
  source_id              text             collate "C" not null,
  destination_id         text             collate "C" not null,
  protocol               text             not null,
  dial_address           text             not null,
  iteration              bigint           not null,
  static_cost            integer          not null default 1,
  source_latency_ms      double precision not null,
  destination_latency_ms double precision not null,
  is_down                boolean          not null default false,
  replica_id             text             collate "C" not null,
  version                bigint           not null default nextval('link_version'),
  created_at             timestamptz(3)   not null default now(),
  updated_at             timestamptz(3)   not null default now()
);
create index link_source on link (source_id);
create index link_destination on link (destination_id);
comment on column link.source_id is 'the router that dialed and reports it';
comment on column link.replica_id is 'the replica that it was reported to';
comment on column link.version is 'new with every change, so that replicas can compare their copies by count and sum';
