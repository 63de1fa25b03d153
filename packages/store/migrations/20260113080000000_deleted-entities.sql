-- Up Migration
-- Entities of other schemas whose deletion this schema has applied. Rows that name one must not be written afterwards,
-- because the consumer has already removed its references. Kept for as long as a write may take.

create table deleted_entity (
  kind       text        collate "C" not null,
  id         text        collate "C" not null,
  deleted_by xid8        not null default pg_current_xact_id(),
  at         timestamptz not null default now(),
  primary key (kind, id)
);
create index deleted_entity_by_at on deleted_entity (at);
comment on table deleted_entity is 'kind '''': the schema of this name has been loaded anew, any of its entities may be deleted';
comment on column deleted_entity.deleted_by is 'a write that looked its references up before this transaction was visible must not commit';
