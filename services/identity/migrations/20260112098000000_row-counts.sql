-- Up Migration
-- Counts of the large tables; see row-count-parts.

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
