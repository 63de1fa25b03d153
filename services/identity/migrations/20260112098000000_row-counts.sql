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

create trigger identity_comes after insert on identity referencing new table as changed
  for each statement execute function count_rows();
create trigger identity_goes after delete on identity referencing old table as changed
  for each statement execute function count_rows();
insert into row_count select 'identity', count(*) from identity;

create trigger authenticator_comes after insert on authenticator referencing new table as changed
  for each statement execute function count_rows();
create trigger authenticator_goes after delete on authenticator referencing old table as changed
  for each statement execute function count_rows();
insert into row_count select 'authenticator', count(*) from authenticator;

create trigger api_session_comes after insert on api_session referencing new table as changed
  for each statement execute function count_rows();
create trigger api_session_goes after delete on api_session referencing old table as changed
  for each statement execute function count_rows();
insert into row_count select 'api_session', count(*) from api_session;
