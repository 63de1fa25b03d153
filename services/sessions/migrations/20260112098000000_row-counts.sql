-- Up Migration
-- Counts of the large tables; see row-count-parts.

create trigger session_comes after insert on session referencing new table as changed
  for each statement execute function count_rows();
create trigger session_goes after delete on session referencing old table as changed
  for each statement execute function count_rows();
insert into row_count select 'session', count(*) from session;

create trigger terminator_comes after insert on terminator referencing new table as changed
  for each statement execute function count_rows();
create trigger terminator_goes after delete on terminator referencing old table as changed
  for each statement execute function count_rows();
insert into row_count select 'terminator', count(*) from terminator;
