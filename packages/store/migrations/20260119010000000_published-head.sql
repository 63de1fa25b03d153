-- Up Migration
-- How far the change log has got, for the other services of the database, which can use nothing else of this schema:
-- tables need grants, and functions run with the rights of their caller, except one that only its grantees may call.

create view head as select timeline, number from stream;
grant select on head to public;
do $$
begin
  execute format('grant usage on schema %I to public', current_schema());
end $$;
