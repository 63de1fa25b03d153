-- Up Migration
-- API sessions. A login appends no change; the end of a session does.

create table api_session (
  id                  text           collate "C" primary key,
  token               text           not null,
  token_digest        bytea          not null constraint api_session_token_is_unique unique,
  identity_id         text           collate "C" not null references identity,
  authenticator_id    text           collate "C" not null,
  ip_address          text           collate "C" not null,
  config_types        text[]         not null default '{}',
  is_mfa_required     boolean        not null default false,
  is_mfa_complete     boolean        not null default false,
  is_cert_extendable  boolean        not null default false,
  last_activity_at    timestamptz(3) not null default now(),
  tags                jsonb          not null default '{}',
  is_system           boolean        not null default false,
  created_at          timestamptz(3) not null default now(),
  updated_at          timestamptz(3) not null default now()
) with (fillfactor = 70); -- activity is written again and again: room for it beside the row, and no index on it
create index api_session_by_identity on api_session (identity_id);
create index api_session_by_authenticator on api_session (authenticator_id);
comment on column api_session.token_digest is 'sha-256; the look-up does not compare the token itself';
comment on column api_session.authenticator_id is 'not always a row: a certificate authority or a signer may vouch';

create table api_session_certificate (
  id             text           collate "C" primary key,
  api_session_id text           collate "C" not null references api_session on delete cascade,
  subject        text           collate "C" not null,
  fingerprint    text           collate "C" not null,
  certificate    text           not null,
  valid_from     timestamptz(3) not null,
  valid_to       timestamptz(3) not null,
  tags           jsonb          not null default '{}',
  is_system      boolean        not null default false,
  created_at     timestamptz(3) not null default now(),
  updated_at     timestamptz(3) not null default now()
);
create index api_session_certificate_by_session on api_session_certificate (api_session_id);
create index api_session_certificate_by_fingerprint on api_session_certificate (fingerprint);
comment on table api_session_certificate is 'by which routers know the connections of a session';
