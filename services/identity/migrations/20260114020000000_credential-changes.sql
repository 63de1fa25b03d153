-- Up Migration
-- API sessions whose credentials for routers have changed. A login adds a row and waits for no other writer; rows move
-- to the change log in batches, without the credentials.

create table credential_change (
  id             bigint generated always as identity primary key,
  api_session_id text   collate "C" not null
);
comment on table credential_change is 'triggers add rows: whatever changes credentials, routers learn of it';

create function note_new_session() returns trigger language plpgsql set search_path from current as $$
begin
  insert into credential_change (api_session_id) values (new.id);
  return null;
end $$;
create trigger api_session_has_credentials after insert on api_session
  for each row execute function note_new_session();
create trigger api_session_is_authenticated after update of is_mfa_required, is_mfa_complete on api_session
  for each row execute function note_new_session();

-- The session of a certificate may be gone: a cascade deletes certificates after it.
create function note_certificate() returns trigger language plpgsql set search_path from current as $$
begin
  insert into credential_change (api_session_id)
  select id from api_session where id = case tg_op when 'DELETE' then old.api_session_id else new.api_session_id end;
  return null;
end $$;
create trigger api_session_certificate_changes after insert or delete on api_session_certificate
  for each row execute function note_certificate();

create function note_authenticator() returns trigger language plpgsql set search_path from current as $$
begin
  insert into credential_change (api_session_id)
  select id from api_session
   where identity_id = case tg_op when 'DELETE' then old.identity_id else new.identity_id end;
  return null;
end $$;
create trigger authenticator_certificate_comes after insert on authenticator
  for each row when (new.fingerprint is not null) execute function note_authenticator();
create trigger authenticator_certificate_goes after delete on authenticator
  for each row when (old.fingerprint is not null) execute function note_authenticator();
create trigger authenticator_has_certificate after update of fingerprint, unverified_fingerprint on authenticator
  for each row when ((old.fingerprint, old.unverified_fingerprint)
                     is distinct from (new.fingerprint, new.unverified_fingerprint))
  execute function note_authenticator();

create function note_demands() returns trigger language plpgsql set search_path from current as $$
begin
  insert into credential_change (api_session_id)
  select s.id from identity i join api_session s on s.identity_id = i.id where i.auth_policy_id = new.id;
  return null;
end $$;
create trigger auth_policy_demands after update of secondary_require_totp, secondary_require_ext_jwt_signer on auth_policy
  for each row when ((old.secondary_require_totp, old.secondary_require_ext_jwt_signer)
                     is distinct from (new.secondary_require_totp, new.secondary_require_ext_jwt_signer))
  execute function note_demands();

create function note_auth_policy() returns trigger language plpgsql set search_path from current as $$
begin
  insert into credential_change (api_session_id) select id from api_session where identity_id = new.id;
  return null;
end $$;
create trigger identity_has_auth_policy after update of auth_policy_id on identity
  for each row when (old.auth_policy_id is distinct from new.auth_policy_id) execute function note_auth_policy();
