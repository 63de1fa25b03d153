-- Up Migration
-- Wrong tokens of enrollments, by source network. As table guess of schema identity, which has more kinds of secrets.

create unlogged table guess (
  kind         text        collate "C" not null,
  account      bytea       not null,
  source       text        collate "C" not null,
  settled_at   timestamptz not null default '-infinity',
  paused_at    timestamptz,
  succeeded_at timestamptz not null default '-infinity',
  primary key (kind, account, source)
);
