-- Up Migration
-- A connection is deleted with its identity. No foreign key: replicas of the release before report connections of
-- identities that are deleted meanwhile.

create function forget_connections() returns trigger language plpgsql set search_path from current as $$
begin
  delete from identity_connection where identity_id in (select id from deleted);
  return null;
end $$;
create trigger identity_loses_connection after delete on identity referencing old table as deleted
  for each statement execute function forget_connections();

delete from identity_connection where not exists (select from identity where identity.id = identity_id);
