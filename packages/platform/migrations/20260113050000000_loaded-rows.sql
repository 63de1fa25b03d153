-- Up Migration
-- Rows of another schema while a load of them takes effect. The transaction that inserts them deletes them.

create unlogged table loaded_row (
  load uuid not null,
  kind text collate "C" not null,
  id   text collate "C" not null,
  json text not null,
  primary key (load, kind, id)
);
