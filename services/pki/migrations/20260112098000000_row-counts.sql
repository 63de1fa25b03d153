-- Up Migration
-- Counts of the large tables; see row-count-parts.

create trigger enrollment_comes after insert on enrollment referencing new table as changed
  for each statement execute function count_rows();
create trigger enrollment_goes after delete on enrollment referencing old table as changed
  for each statement execute function count_rows();
insert into row_count select 'enrollment', count(*) from enrollment;
