-- Up Migration
-- Messages to routers of other replicas, while the bus does not deliver them. Unlogged: they are short-lived.

create unlogged table router_command (
  id         uuid           primary key,
  replica_id text           collate "C" not null,
  command    jsonb          not null,
  is_taken   boolean        not null default false,
  answer     jsonb,
  ends_at    timestamptz(3) not null
);
create index router_command_waiting on router_command (replica_id) where not is_taken;
