-- Up Migration
-- Edge and transit routers: they share names, and the list of transit routers contains both.

create table router (
  id                     text           collate "C" primary key,
  name                   text           collate "C" not null constraint edge_router_name_is_unique unique,
  is_edge                boolean        not null,
  role_attributes        text[]         not null default '{}',
  is_tunneler_enabled    boolean        not null default false,
  cost                   integer        not null default 0,
  no_traversal           boolean        not null default false,
  disabled               boolean        not null default false,
  app_data               jsonb          not null default '{}',
  enrollment_id          text,
  is_verified            boolean        not null default false,
  fingerprint            text,
  cert_pem               text,
  unverified_fingerprint text,
  unverified_cert_pem    text,
  tags                   jsonb          not null default '{}',
  is_system              boolean        not null default false,
  created_at             timestamptz(3) not null default now(),
  updated_at             timestamptz(3) not null default now(),
  constraint router_cost_is_a_cost check (cost between 0 and 65535)
);
comment on column router.enrollment_id is 'the one enrollment by which it may come in, while it has not';
create index router_role_attributes on router using gin (role_attributes);
create index router_fingerprint on router (fingerprint);

-- Connected routers and what they report. Unlogged: connections do not survive a crash either.
create unlogged table presence (
  router_id           text           collate "C" primary key,
  hostname            text           not null,
  supported_protocols jsonb          not null,
  sync_status         text           not null,
  version_info        jsonb          not null,
  connected_at        timestamptz(3) not null default now()
);
