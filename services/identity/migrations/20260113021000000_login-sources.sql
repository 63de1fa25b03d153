-- Up Migration
-- Attempts to log in by password, by user name and source network. Unknown names leave the same rows as known ones.
-- Unlogged: a failure costs no flush, and a crash of the server clears them.

alter table login_attempt set unlogged;

create unlogged table login_source (
  name_digest  bytea       not null,
  source       text        collate "C" not null,
  failures     integer     not null default 0,
  failed_at    timestamptz not null default '-infinity',
  succeeded_at timestamptz not null default '-infinity',
  primary key (name_digest, source)
);
comment on column login_source.name_digest is 'sha-256 of the user name: people type passwords there too';
comment on column login_source.source is 'an IPv4 address, an IPv6 network of 64 bits, or ''*'' for all together';
comment on column login_source.failures is 'since the last success, or since 15 minutes passed without one more';
