-- Up Migration
-- How many rows the large tables have, in parts that add up: lists tell it, and to count costs more the more there are.
-- Whoever writes adds a part and waits for nobody; now and then the parts are made one.

create table row_count (
  table_name text   not null,
  rows       bigint not null
);

create function count_rows() returns trigger language plpgsql set search_path from current as $$
begin
  insert into row_count
  select tg_table_name, case tg_op when 'INSERT' then count(*) else -count(*) end
    from changed having count(*) > 0;
  return null;
end $$;
