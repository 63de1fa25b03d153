-- Up Migration
-- API sessions that ended before their access tokens expired. Routers that verify tokens themselves must refuse these.

create table revoked_api_session (
  id          text           collate "C" primary key,
  identity_id text           collate "C" not null,
  expires_at  timestamptz(3) not null
);
create index revoked_api_session_by_end on revoked_api_session (expires_at);
comment on column revoked_api_session.expires_at is 'end of the last access token, after which the row is removed';

-- Before a cascade deletes the tokens.
create function note_revocation() returns trigger language plpgsql set search_path from current as $$
begin
  insert into revoked_api_session (id, identity_id, expires_at)
  select old.id, old.identity_id, max(expires_at) from access_token
   where api_session_id = old.id having max(expires_at) > clock_timestamp()
      on conflict (id) do nothing;
  if found then
    insert into credential_change (api_session_id) values (old.id);
  end if;
  return old;
end $$;
create trigger api_session_of_tokens_ends before delete on api_session
  for each row when (old.client_id is not null) execute function note_revocation();
