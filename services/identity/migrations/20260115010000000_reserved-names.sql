-- Up Migration
-- Names that routers are about to get, and with them their identities. No other identity may take them meanwhile.

create table reserved_name (
  name      text        collate "C" primary key,
  router_id text        collate "C" not null,
  until     timestamptz not null
);
comment on column reserved_name.until is 'a router that does not have the name then never gets it by this reservation';

-- Inserts and updates share the lock that a reservation takes alone: of two transactions with one name, the later one
-- sees the other. A reserved row is left out of an insert, like one in conflict.
create function refuse_reserved_name() returns trigger language plpgsql set search_path from current as $$
begin
  perform pg_advisory_xact_lock_shared(hashtext(current_schema() || ' identity names'));
  if not exists (select from reserved_name where name = new.name and router_id <> new.id) then
    return new;
  elsif tg_op = 'INSERT' then
    return null;
  end if;
  raise exception using
    errcode = 'unique_violation', constraint = 'identity_name_is_unique', message = 'the name is reserved for a router',
    detail = format('Key (name)=(%s) already exists.', new.name);
end $$;
create trigger identity_has_name before insert on identity
  for each row execute function refuse_reserved_name();
create trigger identity_is_renamed before update of name on identity
  for each row when (old.name is distinct from new.name) execute function refuse_reserved_name();
