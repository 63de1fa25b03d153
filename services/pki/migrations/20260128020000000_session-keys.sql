-- Up Migration
-- Keys that sign the tokens of sessions for services. A table of their own: the former release signs with any active key of
-- token_key.

create table session_key (
  id          text           collate "C" primary key,
  state       text           collate "C" not null constraint session_key_state_is_known check (state in ('next', 'active', 'retired')),
  source      text           collate "C" not null constraint session_key_source_is_known check (source in ('generated', 'provided')),
  public_jwk  json           not null,
  private_key text           not null,
  created_at  timestamptz(3) not null,
  active_at   timestamptz(3) constraint session_key_is_dated_when_active check ((active_at is null) = (state = 'next')),
  retired_at  timestamptz(3) constraint session_key_is_dated_when_retired check ((retired_at is not null) = (state = 'retired'))
);
create unique index session_key_is_next_once on session_key (state) where state = 'next';
create unique index session_key_is_active_once on session_key (state) where state = 'active';

comment on column session_key.id is 'how tokens name the key: the thumbprint of RFC 7638';
comment on column session_key.private_key is 'PKCS#8, encrypted with the key secret, which is not in the database';
