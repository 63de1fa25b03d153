-- Up Migration
-- Circuits of sessions and their routers.

create table circuit (
  id         text           collate "C" primary key,
  client_id  text           collate "C" not null,
  router_ids text[]         not null,
  created_at timestamptz(3) not null default now()
);
comment on column circuit.client_id is 'the session that it was made for';
create index circuit_client on circuit (client_id);

-- Controllers with an address of their own.
create table controller (
  id             text           collate "C" primary key,
  name           text           collate "C" not null,
  ctrl_address   text           collate "C",
  cert_pem       text           not null,
  fingerprint    text           collate "C" not null,
  is_online      boolean        not null default false,
  last_joined_at timestamptz(3),
  api_addresses  jsonb,
  tags           jsonb          not null default '{}',
  is_system      boolean        not null default false,
  created_at     timestamptz(3) not null default now(),
  updated_at     timestamptz(3) not null default now()
);
