-- Up Migration
-- Sessions: permissions to dial or bind. The constraint makes a second create return the first session.

create table session (
  id               text           collate "C" primary key,
  token            text           collate "C" not null constraint session_token_is_unique unique,
  type             text           collate "C" not null,
  api_session_id   text           collate "C" not null,
  service_id       text           collate "C" not null,
  identity_id      text           collate "C" not null,
  service_policies text[]         not null default '{}',
  tags             jsonb          not null default '{}',
  is_system        boolean        not null default false,
  created_at       timestamptz(3) not null default now(),
  updated_at       timestamptz(3) not null default now(),
  constraint session_type_is_dial_or_bind check (type in ('Dial', 'Bind')),
  constraint session_is_one_of_its_sort unique (api_session_id, service_id, type)
);
create index session_service on session (service_id);
create index session_identity on session (identity_id);
