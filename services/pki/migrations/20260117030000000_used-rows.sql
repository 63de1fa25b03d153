-- Up Migration
-- Whether enrollments need an authority that is about to be deleted. Volatile: each call sees what has been committed by
-- then, so also what was committed while the caller locked the row.

create function ca_is_used(id text) returns boolean language plpgsql as $$
begin
  return exists (select from enrollment where ca_id = $1);
end $$;
