-- Up Migration
-- Replicas, and the routers that are connected to them. Unlogged: after a crash the replicas write their rows again.

create unlogged table replica (
  id            text           collate "C" primary key,
  incarnation   uuid           not null,
  version       bigint         not null default 0,
  lease_ends_at timestamptz(3) not null
);
comment on table replica is 'rows of processes that have ended are deleted after a while';
comment on column replica.id is 'its controller id, by which routers distinguish replicas';
comment on column replica.incarnation is 'the process that has the id';
comment on column replica.version is 'counts the writes of its presence rows';

drop table presence;
create unlogged table presence (
  router_id           text           collate "C" not null,
  replica_id          text           collate "C" not null references replica on delete cascade,
  hostname            text           not null,
  supported_protocols jsonb          not null,
  sync_status         text           not null,
  version_info        jsonb          not null,
  link_listeners      bytea          not null,
  connected_at        timestamptz(3) not null,
  primary key (router_id, replica_id)
);
create index presence_replica_id on presence (replica_id);

create view live_presence as
  select presence.* from presence join replica on replica.id = replica_id where lease_ends_at > now();
