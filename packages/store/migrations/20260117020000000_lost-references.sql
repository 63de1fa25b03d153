-- Up Migration
-- Locks the entities of other schemas that rows are about to name, in one of so many slots each, and returns the ids of
-- the rows whose entities have been deleted since their moment. Each row must be left out then. Volatile: what a
-- consumer committed while its lock was awaited is seen.

create function lost_references(wanted jsonb, slots int) returns setof text language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(hashtext(current_schema() || ' references'), slot)
     from (select distinct abs(hashtext(kind || ' ' || referred) % slots) as slot
             from jsonb_to_recordset(wanted) as reference (kind text, referred text)
            order by 1) as slots_in_order;
  return query
    select reference.id
      from jsonb_to_recordset(wanted)
        as reference (id text, kind text, referred text, owner text, moment pg_snapshot)
     where exists (select from deleted_entity
                    where not pg_visible_in_snapshot(deleted_by, moment)
                      and (deleted_entity.kind = reference.kind and deleted_entity.id = referred
                           or deleted_entity.kind = '' and deleted_entity.id = owner));
end $$;
