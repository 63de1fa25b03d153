-- Up Migration
-- Keys that sign the tokens of OpenID Connect. They have no certificate and are replaced periodically: the next one is
-- published before it signs, and a retired one until the last token that it may have signed has expired.

create table token_key (
  id          text           collate "C" primary key,
  state       text           collate "C" not null constraint token_key_state_is_known check (state in ('next', 'active', 'retired')),
  public_jwk  json           not null,
  private_key text           not null,
  created_at  timestamptz(3) not null,
  active_at   timestamptz(3) constraint token_key_is_dated_when_active check ((active_at is null) = (state = 'next')),
  retired_at  timestamptz(3) constraint token_key_is_dated_when_retired check ((retired_at is not null) = (state = 'retired'))
);
create unique index token_key_is_next_once on token_key (state) where state = 'next';
create unique index token_key_is_active_once on token_key (state) where state = 'active';

comment on column token_key.id is 'how tokens name the key: the thumbprint of RFC 7638';
comment on column token_key.private_key is 'PKCS#8, encrypted with the key secret, which is not in the database';
