-- Up Migration
-- Logins by OpenID Connect, and what their tokens contain.

create unlogged table oidc_login (
  id                 uuid        primary key,
  source             text        collate "C" not null,
  client_id          text        collate "C" not null,
  redirect_uri       text        not null,
  scopes             text[]      not null,
  state              text        not null,
  nonce              text        not null,
  code_challenge     text        not null,
  config_types       text[]      not null,
  fingerprints       text[]      not null,
  first_factor       jsonb,
  identity_id        text        collate "C",
  browser_digest     bytea,
  is_mfa_complete    boolean     not null default false,
  second_signer_id   text        collate "C",
  code_digest        bytea       constraint oidc_login_code_is_unique unique,
  created_at         timestamptz not null default now(),
  expires_at         timestamptz not null
);
create index oidc_login_by_source on oidc_login (source, created_at);
create index oidc_login_by_expiry on oidc_login (expires_at);
comment on table oidc_login is 'authorization requests, until their code is redeemed; unlogged: after a crash of the server clients start again';
comment on column oidc_login.source is 'the network that started it: an IPv4 address, or an IPv6 network of 64 bits';
comment on column oidc_login.first_factor is 'what the first factor has proven, and what the tokens say of it; null: not presented';
comment on column oidc_login.identity_id is 'of the first factor; not a reference, so that no delete of an identity waits for a login';
comment on column oidc_login.browser_digest is 'sha-256 of the secret of the browser that presented it: only it continues; null: the client is no browser';
comment on column oidc_login.code_digest is 'sha-256; null: the login has not been finished';

create table oidc_grant (
  api_session_id text        collate "C" primary key references api_session on delete cascade,
  scopes         text[]      not null,
  nonce          text        not null,
  fingerprints   text[]      not null,
  env_info       jsonb,
  sdk_info       jsonb,
  auth_time      timestamptz not null
);
comment on table oidc_grant is 'what the tokens of an API session repeat from its login';

create table refresh_token (
  id             uuid        primary key,
  api_session_id text        collate "C" not null references api_session on delete cascade,
  expires_at     timestamptz not null,
  consumed_at    timestamptz
);
create index refresh_token_by_session on refresh_token (api_session_id);
create index refresh_token_by_expiry on refresh_token (expires_at);
comment on column refresh_token.id is 'claim jti';
comment on column refresh_token.consumed_at is 'a refresh has replaced it; kept, so that its reuse is recognized';
