-- Up Migration
-- When a router last said that an identity is connected to it. Lost with a crash: the next heartbeat says it again.

create unlogged table identity_connection (
  identity_id text           collate "C" primary key,
  seen_at     timestamptz(3) not null
);
