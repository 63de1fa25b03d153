-- Up Migration
-- Row counts of large tables, for the totals of lists, as parts that add up. A write adds a part and waits for no
-- other write; parts are merged periodically.

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
