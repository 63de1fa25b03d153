-- Up Migration
-- Identities, their auth policies and their authenticators.

create table auth_policy (
  id         text           collate "C" primary key,
  name       text           collate "C" not null constraint auth_policy_name_is_unique unique,
  primary_cert_allowed                   boolean not null,
  primary_cert_allow_expired_certs       boolean not null,
  primary_ext_jwt_allowed                boolean not null,
  primary_ext_jwt_allowed_signers        text[]  not null default '{}',
  primary_updb_allowed                   boolean not null,
  primary_updb_lockout_duration_minutes  integer not null,
  primary_updb_max_attempts              integer not null,
  primary_updb_min_password_length       integer not null,
  primary_updb_require_mixed_case        boolean not null,
  primary_updb_require_number_char       boolean not null,
  primary_updb_require_special_char      boolean not null,
  secondary_require_ext_jwt_signer       text    collate "C",
  secondary_require_totp                 boolean not null,
  tags       jsonb          not null default '{}',
  is_system  boolean        not null default false,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
comment on column auth_policy.primary_updb_max_attempts is '0: no limit';
comment on column auth_policy.primary_updb_lockout_duration_minutes is '0: until somebody enables the identity';

insert into auth_policy values
  ('default', 'Default', true, true, true, '{}', true, 0, 0, 5, false, false, false, null, false);

create table identity_type (
  id         text           collate "C" primary key,
  name       text           collate "C" not null constraint identity_type_name_is_unique unique,
  tags       jsonb          not null default '{}',
  is_system  boolean        not null default false,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
insert into identity_type (id, name) values ('Default', 'Default'), ('Router', 'Router');

create table identity (
  id                          text           collate "C" primary key,
  name                        text           collate "C" not null constraint identity_name_is_unique unique,
  type                        text           collate "C" not null references identity_type,
  is_admin                    boolean        not null,
  is_default_admin            boolean        not null default false,
  role_attributes             text[]         not null default '{}',
  external_id                 text           collate "C" constraint identity_external_id_is_unique unique,
  auth_policy_id              text           collate "C" not null
                              constraint identity_auth_policy_exists references auth_policy,
  app_data                    jsonb          not null default '{}',
  default_hosting_cost        integer        not null default 0,
  default_hosting_precedence  text           not null default 'default',
  service_hosting_costs       jsonb          not null default '{}',
  service_hosting_precedences jsonb          not null default '{}',
  env_info                    jsonb          not null default '{}',
  sdk_info                    jsonb          not null default '{}',
  disabled_at                 timestamptz(3),
  disabled_until              timestamptz(3),
  enrollment                  jsonb,
  tags                        jsonb          not null default '{}',
  is_system                   boolean        not null default false,
  created_at                  timestamptz(3) not null default now(),
  updated_at                  timestamptz(3) not null default now()
);
create index identity_by_role_attributes on identity using gin (role_attributes);
create index identity_by_auth_policy on identity (auth_policy_id);
create unique index identity_has_one_default_admin on identity (is_default_admin) where is_default_admin;
comment on column identity.disabled_until is 'with disabled_at: when the lock lapses; null: until somebody enables it';
comment on column identity.enrollment is 'as it was asked for at create, without its token';

create table authenticator (
  id                     text           collate "C" primary key,
  method                 text           not null
                         constraint authenticator_method_is_known check (method in ('updb', 'cert')),
  identity_id            text           collate "C" not null references identity,
  username               text           collate "C" constraint authenticator_username_is_unique unique,
  password               text,
  cert_pem               text,
  fingerprint            text           collate "C" constraint authenticator_fingerprint_is_unique unique,
  is_issued_by_network   boolean        not null default false,
  enrollment_id          text           collate "C" constraint authenticator_enrollment_id_is_unique unique,
  unverified_cert_pem    text,
  unverified_fingerprint text           collate "C",
  tags                   jsonb          not null default '{}',
  is_system              boolean        not null default false,
  created_at             timestamptz(3) not null default now(),
  updated_at             timestamptz(3) not null default now()
);
create index authenticator_by_identity on authenticator (identity_id);
comment on column authenticator.password is 'argon2id hash with its parameters and salt, in the form of the PHC';
comment on column authenticator.enrollment_id is 'by which it came; a second one from the same enrollment is refused';

create table login_attempt (
  authenticator_id text           collate "C" primary key references authenticator on delete cascade,
  failures         integer        not null,
  last_at          timestamptz(3) not null default now()
);
comment on table login_attempt is 'wrong passwords since the last right one; shared by all replicas';
