-- Up Migration
-- Keys of the issuers of external tokens, and the tokens that sessions present beside their credential.

create table signer_key_set (
  signer_id      text     collate "C" primary key references external_jwt_signer (id) on delete cascade,
  endpoint       text     not null,
  keys           jsonb    not null default '{}',
  fetched_at     timestamptz,
  fetch_number   bigint   not null default 0,
  fetching_until timestamptz,
  failed_at      timestamptz,
  failures       integer  not null default 0,
  missed         jsonb    not null default '{}'
);
comment on table signer_key_set is 'the published keys of a signer, fetched by one replica for all';
comment on column signer_key_set.endpoint is 'where they are from; not that of the signer: they do not count';
comment on column signer_key_set.keys is 'by key id: DER of the public key as base64, and its algorithm if it has one';
comment on column signer_key_set.fetch_number is 'number of the last fetch; only that one may store its result';
comment on column signer_key_set.fetching_until is 'a replica fetches; it is given up at that time';
comment on column signer_key_set.failures is 'consecutive failed fetches';
comment on column signer_key_set.missed is 'key ids that the last minute asked for in vain, with the time in milliseconds';

alter table api_session add column second_signer_id text collate "C";
alter table api_session add column second_token_until timestamptz;
alter table api_session add constraint api_session_second_token_is_whole
  check ((second_signer_id is null) = (second_token_until is null));
create index api_session_by_second_token on api_session (second_token_until)
  where second_token_until is not null and second_token_until <> 'infinity';
comment on column api_session.second_signer_id is 'the signer of the token that was presented as the second factor';
comment on column api_session.second_token_until is 'for how long it counts for routers; infinity: as long as the session';

create trigger api_session_has_second_token after update of second_signer_id, second_token_until on api_session
  for each row when ((old.second_signer_id, old.second_token_until)
                     is distinct from (new.second_signer_id, new.second_token_until))
  execute function note_new_session();

-- Sessions wait for the tokens of a signer, or are opened by them.
create table ended_signer (
  signer_id text collate "C" primary key
);
comment on table ended_signer is 'signers that no longer admit anyone: the reaper ends the sessions that they opened';

create function note_signer() returns trigger language plpgsql set search_path from current as $$
begin
  insert into credential_change (api_session_id) select id from api_session where second_signer_id = new.id;
  return null;
end $$;
create trigger signer_is_switched after update of enabled on external_jwt_signer
  for each row when (old.enabled is distinct from new.enabled) execute function note_signer();
create index api_session_by_second_signer on api_session (second_signer_id) where second_signer_id is not null;
