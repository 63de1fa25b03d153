-- Up Migration
-- Rows of another schema while a reload applies them. The transaction that inserts them deletes them.

create unlogged table loaded_row (
  load uuid not null,
  kind text collate "C" not null,
  id   text collate "C" not null,
  json text not null,
  primary key (load, kind, id)
);
