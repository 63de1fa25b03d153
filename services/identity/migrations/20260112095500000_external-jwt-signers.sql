-- Up Migration
-- Issuers of external tokens.

create table external_jwt_signer (
  id                text           collate "C" primary key,
  name              text           collate "C" not null constraint external_jwt_signer_name_is_unique unique,
  issuer            text           collate "C" not null constraint external_jwt_signer_issuer_is_unique unique,
  kid               text           collate "C" constraint external_jwt_signer_kid_is_unique unique,
  fingerprint       text           collate "C" constraint external_jwt_signer_fingerprint_is_unique unique,
  enabled           boolean        not null,
  audience          text           collate "C" not null,
  cert_pem          text           collate "C",
  jwks_endpoint     text,
  claims_property   text           collate "C" not null,
  use_external_id   boolean        not null,
  external_auth_url text,
  client_id         text           collate "C",
  scopes            text[]         not null default '{}',
  common_name       text           collate "C" not null,
  not_before        timestamptz(3),
  not_after         timestamptz(3),
  tags              jsonb          not null default '{}',
  is_system         boolean        not null default false,
  created_at        timestamptz(3) not null default now(),
  updated_at        timestamptz(3) not null default now(),
  constraint external_jwt_signer_has_one_source_of_keys check (num_nonnulls(cert_pem, jwks_endpoint) = 1)
);
comment on column external_jwt_signer.kid is 'null with a certificate: its fingerprint names it';
