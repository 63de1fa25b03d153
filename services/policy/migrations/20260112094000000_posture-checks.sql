-- Up Migration
-- Posture checks, posture data of endpoints, and refused session requests.

create table posture_check_type (
  id                text           collate "C" primary key,
  name              text           collate "C" not null constraint posture_check_type_name_is_unique unique,
  operating_systems jsonb          not null,
  version           text,
  tags              jsonb          not null default '{}',
  is_system         boolean        not null default false,
  created_at        timestamptz(3) not null default now(),
  updated_at        timestamptz(3) not null default now()
);
comment on table posture_check_type is 'as clients show them; checks of type MFA exist though there is no row';

with known (type, versions) as (
  values ('Android', '["10", "11", "9"]'::jsonb),
         ('Linux',   '["4.14", "4.19", "5.4", "5.9"]'),
         ('Windows', '["10", "2000", "7", "8", "Vista"]'),
         ('iOS',     '["11", "12"]'),
         ('macOS',   '["10.15", "11.0"]')),
kind (id, name, systems, versioned) as (
  values ('OS',            'Operating System Check', '{Android,Linux,Windows,iOS,macOS}'::text[], true),
         ('DOMAIN',        'Windows Domain Check',   '{Windows}', true),
         ('MAC',           'MAC Address Check',      '{Android,Linux,Windows,macOS}', true),
         ('PROCESS',       'Process Check',          '{Linux,Windows,macOS}', true),
         ('PROCESS_MULTI', 'Process Multi Check',    '{Linux,Windows,macOS}', false))
insert into posture_check_type (id, name, operating_systems)
select kind.id, kind.name,
       jsonb_agg(jsonb_build_object('type', known.type, 'versions', case when versioned then known.versions end)
                 order by known.type collate "C")
  from kind join known on known.type = any(kind.systems)
 group by kind.id, kind.name;

create table posture_check (
  id                         text           collate "C" primary key,
  name                       text           collate "C" not null constraint posture_check_name_is_unique unique,
  type_id                    text           not null,
  role_attributes            text[]         collate "C" not null default '{}',
  operating_systems          jsonb,
  domains                    jsonb,
  mac_addresses              jsonb,
  process_os_type            text,
  process_path               text,
  process_hashes             jsonb,
  process_signer_fingerprint text,
  semantic                   text,
  processes                  jsonb,
  timeout_seconds            bigint,
  prompt_on_wake             boolean,
  prompt_on_unlock           boolean,
  ignore_legacy_endpoints    boolean,
  tags                       jsonb          not null default '{}',
  is_system                  boolean        not null default false,
  created_at                 timestamptz(3) not null default now(),
  updated_at                 timestamptz(3) not null default now()
);
create index posture_check_by_role_attributes on posture_check using gin (role_attributes);
comment on column posture_check.type_id is 'says which of the columns after role_attributes are set; never changes';

create table posture_data (
  identity_id text  collate "C" primary key,
  data        jsonb not null
);
comment on table posture_data is 'what the endpoints of an identity last said of themselves';

create table failed_request (
  identity_id text           collate "C" not null,
  at          timestamptz(3) not null default clock_timestamp(),
  id          bigint         generated always as identity,
  request     jsonb          not null,
  primary key (identity_id, id)
);
comment on table failed_request is 'sessions that posture checks refused: the last hundred of each identity';
