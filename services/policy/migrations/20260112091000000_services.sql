-- Up Migration
-- Services, configs and policies. Policies store role lists; their selections are computed, never stored.

create table config_type (
  id         text           collate "C" primary key,
  name       text           collate "C" not null constraint config_type_name_is_unique unique,
  schema     jsonb,
  tags       jsonb          not null default '{}',
  is_system  boolean        not null default false,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
comment on column config_type.schema is 'JSON Schema of the data of its configs; null: any object';

create table config (
  id             text           collate "C" primary key,
  name           text           collate "C" not null constraint config_name_is_unique unique,
  config_type_id text           collate "C" not null constraint config_config_type_exists references config_type,
  data           jsonb          not null,
  tags           jsonb          not null default '{}',
  is_system      boolean        not null default false,
  created_at     timestamptz(3) not null default now(),
  updated_at     timestamptz(3) not null default now()
);
create index config_by_config_type on config (config_type_id);

create table service (
  id                   text           collate "C" primary key,
  name                 text           collate "C" not null constraint service_name_is_unique unique,
  encryption_required  boolean        not null,
  terminator_strategy  text           collate "C" not null,
  max_idle_time_millis bigint         not null default 0,
  configs              text[]         collate "C" not null default '{}',
  role_attributes      text[]         collate "C" not null default '{}',
  tags                 jsonb          not null default '{}',
  is_system            boolean        not null default false,
  created_at           timestamptz(3) not null default now(),
  updated_at           timestamptz(3) not null default now()
);
create index service_by_role_attributes on service using gin (role_attributes);
create index service_by_configs on service using gin (configs);

create table service_config (
  identity_id    text collate "C" not null,
  service_id     text collate "C" not null,
  config_type_id text collate "C" not null references config_type,
  config_id      text collate "C" not null constraint service_config_config_exists references config,
  primary key (identity_id, service_id, config_type_id)
);
create index service_config_by_config on service_config (config_id);
create index service_config_by_service on service_config (service_id);
comment on table service_config is 'one identity''s own config for a service, in place of the service''s own of that type';
comment on column service_config.service_id is 'may name a service that does not exist';

create table service_policy (
  id                  text           collate "C" primary key,
  name                text           collate "C" not null constraint service_policy_name_is_unique unique,
  type                smallint       not null constraint service_policy_type_is_dial_or_bind check (type in (1, 2)),
  semantic            text           not null,
  identity_roles      text[]         collate "C" not null default '{}',
  service_roles       text[]         collate "C" not null default '{}',
  posture_check_roles text[]         collate "C" not null default '{}',
  tags                jsonb          not null default '{}',
  is_system           boolean        not null default false,
  created_at          timestamptz(3) not null default now(),
  updated_at          timestamptz(3) not null default now()
);
create index service_policy_by_identity_roles on service_policy using gin (identity_roles);
create index service_policy_by_service_roles on service_policy using gin (service_roles);
comment on column service_policy.type is '1 dial, 2 bind; clients filter on the number';

create table edge_router_policy (
  id                text           collate "C" primary key,
  name              text           collate "C" not null constraint edge_router_policy_name_is_unique unique,
  semantic          text           not null,
  identity_roles    text[]         collate "C" not null default '{}',
  edge_router_roles text[]         collate "C" not null default '{}',
  tags              jsonb          not null default '{}',
  is_system         boolean        not null default false,
  created_at        timestamptz(3) not null default now(),
  updated_at        timestamptz(3) not null default now()
);
create index edge_router_policy_by_identity_roles on edge_router_policy using gin (identity_roles);
create index edge_router_policy_by_edge_router_roles on edge_router_policy using gin (edge_router_roles);

create table service_edge_router_policy (
  id                text           collate "C" primary key,
  name              text           collate "C" not null constraint service_edge_router_policy_name_is_unique unique,
  semantic          text           not null,
  service_roles     text[]         collate "C" not null default '{}',
  edge_router_roles text[]         collate "C" not null default '{}',
  tags              jsonb          not null default '{}',
  is_system         boolean        not null default false,
  created_at        timestamptz(3) not null default now(),
  updated_at        timestamptz(3) not null default now()
);
create index service_edge_router_policy_by_service_roles on service_edge_router_policy using gin (service_roles);
create index service_edge_router_policy_by_edge_router_roles on service_edge_router_policy using gin (edge_router_roles);
