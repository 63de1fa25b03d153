-- Up Migration
-- Members of identities that other services know: with these rows, a read asks no other service.

create table outstanding_enrollment (
  id          text           collate "C" primary key,
  identity_id text           collate "C" not null
              constraint outstanding_enrollment_identity_exists references identity on delete cascade,
  created_at  timestamptz(3) not null default now()
);
create index outstanding_enrollment_by_identity on outstanding_enrollment (identity_id);
comment on table outstanding_enrollment is
  'enrollments that pki may have: a row is committed before the enrollment, and deleted after it';

-- An enrollment without an id is that of a replica of an earlier release. Its row never leaves: that costs reads a call.
create function expect_enrollment() returns trigger language plpgsql set search_path from current as $$
begin
  insert into outstanding_enrollment (id, identity_id) values (coalesce(new.enrollment ->> 'id', new.id), new.id)
      on conflict do nothing;
  return null;
end $$;
create trigger identity_expects_enrollment after insert on identity
  for each row when (new.enrollment is not null and new.enrollment <> '{}') execute function expect_enrollment();
comment on column identity.enrollment is 'as it was asked for at create, with its id and without its token';

-- The enrollments that exist are loaded.
update followed set timeline = null, number = 0 where schema = 'pki';

create unlogged table identity_connection (
  identity_id text           collate "C" primary key,
  seen_at     timestamptz(3) not null
);
comment on table identity_connection is
  'the last report of a router that an identity is connected to it; the next heartbeat repeats it';
