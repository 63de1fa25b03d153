-- Up Migration
-- Whether a row that is about to be deleted is more than its row: others name it, or it must not be deleted. Volatile:
-- each call sees what has been committed by then, so also what was committed while the caller locked the row.

create function identity_is_used(id text) returns boolean language plpgsql as $$
begin
  return exists (select from identity where identity.id = $1 and (is_default_admin or type <> 'Default'))
      or exists (select from api_session where identity_id = $1)
      or exists (select from authenticator where identity_id = $1)
      or exists (select from second_factor where identity_id = $1)
      or exists (select from identity_trace where identity_id = $1)
      or exists (select from external_id_authority where identity_id = $1);
end $$;

create function auth_policy_is_used(id text) returns boolean language plpgsql as $$
begin
  return $1 = 'default' or exists (select from identity where auth_policy_id = $1);
end $$;
