-- Up Migration
-- Counts of the large tables; see row-count-parts.

create trigger service_comes after insert on service referencing new table as changed
  for each statement execute function count_rows();
create trigger service_goes after delete on service referencing old table as changed
  for each statement execute function count_rows();
insert into row_count select 'service', count(*) from service;

create trigger config_comes after insert on config referencing new table as changed
  for each statement execute function count_rows();
create trigger config_goes after delete on config referencing old table as changed
  for each statement execute function count_rows();
insert into row_count select 'config', count(*) from config;
