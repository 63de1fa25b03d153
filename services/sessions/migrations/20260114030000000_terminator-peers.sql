-- Up Migration
-- What routers report about their terminators, and the dynamic costs of each replica.

alter table terminator
  add column session_id       text  collate "C",
  add column peer_data        jsonb not null default '{}',
  add column saved_precedence text,
  add constraint terminator_saved_precedence_is_known
      check (saved_precedence in ('default', 'required', 'failed'));
comment on column terminator.session_id is 'the bind session that it ends with';
comment on column terminator.peer_data is 'for clients that dial it: base64 by key';
comment on column terminator.saved_precedence is 'while its router is quiesced: the precedence to restore';

-- A dial reads one instance of a service, a validation pages of one router.
drop index terminator_service;
drop index terminator_router;
create index terminator_service on terminator (service_id, instance_id);
create index terminator_router on terminator (router_id, id);
create index terminator_session on terminator (session_id) where session_id is not null;

-- Unlogged: replicas write their costs again.
create unlogged table terminator_cost (
  terminator_id text    collate "C" not null
                constraint terminator_cost_terminator_is_known references terminator on delete cascade,
  replica_id    text    collate "C" not null,
  cost          integer not null,
  constraint terminator_cost_is_one_of_its_replica primary key (terminator_id, replica_id)
);
create index terminator_cost_replica on terminator_cost (replica_id);
