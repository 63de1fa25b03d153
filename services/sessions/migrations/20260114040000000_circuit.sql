-- Up Migration
-- Circuits with what ends, moves and describes them.

alter table circuit
  add column identity_id              text           collate "C" not null default '',
  add column service_id               text           collate "C" not null default '',
  add column terminator_id            text           collate "C" not null default '',
  add column instance_id              text           collate "C" not null default '',
  add column host_id                  text           collate "C" not null default '',
  add column controller_id            text           collate "C" not null default '',
  add column link_ids                 text[]         not null default '{}',
  add column ingress_address          text           collate "C" not null default '',
  add column egress_address           text           collate "C" not null default '',
  add column initiator_local_address  text           not null default '',
  add column initiator_remote_address text           not null default '',
  add column terminator_local_address text           not null default '',
  add column terminator_remote_address text          not null default '',
  add column version                  integer        not null default 1,
  add column moving_until             timestamptz(3),
  add column verified_at              timestamptz(3) not null default now(),
  add column updated_at               timestamptz(3) not null default now();

comment on column circuit.identity_id is 'the client';
comment on column circuit.host_id is 'the identity that hosts the terminator; empty: none';
comment on column circuit.controller_id is 'the replica that set it up: routers report the end of a circuit to this id';
comment on column circuit.link_ids is 'between each two routers';
comment on column circuit.version is 'grows with each request to move it';
comment on column circuit.moving_until is 'a replica moves it; past: that replica has died meanwhile';
comment on column circuit.verified_at is 'its routers knew it at this time';

create index circuit_terminator on circuit (terminator_id);
create index circuit_begins on circuit ((router_ids[1]));
create index circuit_ends on circuit ((router_ids[cardinality(router_ids)]));
create index circuit_verified on circuit (controller_id, verified_at);
create index circuit_moving on circuit (moving_until) where moving_until is not null;
-- Most circuits have one router, and are found by where they begin.
create index circuit_routers on circuit using gin (router_ids) where cardinality(router_ids) > 1;
create index circuit_links on circuit using gin (link_ids) where cardinality(router_ids) > 1;

-- Circuits that have ended, and routers that may not have received it: they forward until they do.
create table unroute (
  router_id  text           collate "C" not null,
  circuit_id text           collate "C" not null,
  ended_at   timestamptz(3) not null default now(),
  primary key (router_id, circuit_id)
);
