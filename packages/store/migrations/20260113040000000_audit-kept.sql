-- Up Migration
-- The service's role inserts and reads audit rows. Only the function below deletes rows, as the schema's owner.

do $$
declare grantee regrole;
begin
  for grantee in
    select distinct a.grantee::regrole
      from pg_class c, aclexplode(c.relacl) a
     where c.oid = 'audit'::regclass and a.grantee not in (0, c.relowner)
  loop
    execute format('revoke update, delete, truncate on audit from %s', grantee);
  end loop;
end $$;

-- Removes up to `batch` rows older than `days`, oldest first, and returns their number. Ids follow the time but for
-- transactions under way, so the primary key finds the oldest. One caller at a time; the others remove nothing.
create function prune_audit(days int, batch int) returns int
language plpgsql security definer as $$
declare removed int;
begin
  if days is null or days < 7 then
    raise exception 'audit rows are kept for 7 days at least, not %', days using errcode = '22023';
  end if;
  if not pg_try_advisory_xact_lock(hashtextextended('prune ' || current_schema(), 0)) then
    return 0;
  end if;
  delete from audit
   where id in (select id from (select id, at from audit order by id limit batch) as oldest
                 where at < now() - make_interval(days => days));
  get diagnostics removed = row_count;
  return removed;
end $$;
revoke all on function prune_audit(int, int) from public;

-- Temporary tables of a caller come last: else it could have its own triggers run with the owner's rights.
do $$
begin
  execute format('alter function prune_audit(int, int) set search_path = %I, pg_temp', current_schema());
end $$;
