-- Up Migration
-- Terminators, and copies of the names of services for filters.

alter table router rename constraint edge_router_name_is_unique to router_name_is_unique;

create table terminator (
  id              text           collate "C" primary key,
  service_id      text           collate "C" not null,
  router_id       text           collate "C" not null constraint terminator_router_is_known references router,
  binding         text           collate "C" not null,
  address         text           collate "C" not null,
  instance_id     text           collate "C" not null default '',
  identity_secret text           not null default '',
  host_id         text           collate "C" not null default '',
  cost            integer        not null default 0,
  precedence      text           not null default 'default',
  dynamic_cost    integer        not null default 0,
  tags            jsonb          not null default '{}',
  is_system       boolean        not null default false,
  created_at      timestamptz(3) not null default now(),
  updated_at      timestamptz(3) not null default now(),
  constraint terminator_cost_is_a_cost check (cost between 0 and 65535),
  constraint terminator_precedence_is_known check (precedence in ('default', 'required', 'failed'))
);
create index terminator_service on terminator (service_id);
create index terminator_router on terminator (router_id);

create table known_service (
  id   text collate "C" primary key,
  name text collate "C" not null
);
comment on table known_service is 'a copy that follows the changes of schema policy';

-- The names are in rows that were followed before: the schema must reload them.
update followed set timeline = null, number = 0 where schema = 'policy';
