-- Up Migration
-- The last report of a router that an identity is connected to it. Unlogged: the next heartbeat repeats it.

create unlogged table identity_connection (
  identity_id text           collate "C" primary key,
  seen_at     timestamptz(3) not null
);
