-- Up Migration
-- Third parties' authorities. Their certificates may enroll and log in after proof that an administrator has the key.

create table ca (
  id                                 text     collate "C" primary key,
  name                               text     collate "C" not null constraint ca_name_is_unique unique,
  cert_pem                           text     not null,
  fingerprint                        text     collate "C" not null constraint ca_fingerprint_is_unique unique,
  is_verified                        boolean  not null default false,
  verification_token                 text     collate "C" not null,
  is_auth_enabled                    boolean  not null,
  is_auto_ca_enrollment_enabled      boolean  not null,
  is_ott_ca_enrollment_enabled       boolean  not null,
  identity_roles                     text[]   not null default '{}',
  identity_name_format               text     not null,
  external_id_claim_location         text,
  external_id_claim_matcher          text,
  external_id_claim_matcher_criteria text,
  external_id_claim_parser           text,
  external_id_claim_parser_criteria  text,
  external_id_claim_index            integer,
  tags                               jsonb          not null default '{}',
  is_system                          boolean        not null default false,
  created_at                         timestamptz(3) not null default now(),
  updated_at                         timestamptz(3) not null default now(),
  constraint ca_external_id_claim_is_whole check (
    num_nulls(external_id_claim_location, external_id_claim_matcher, external_id_claim_matcher_criteria,
              external_id_claim_parser, external_id_claim_parser_criteria, external_id_claim_index) in (0, 6))
);
comment on column ca.cert_pem is 'PEM of one certificate or several; the first is the authority, all are trusted';
comment on column ca.verification_token is 'common name of the certificate that verifies';

create index enrollment_ca on enrollment (ca_id);
