-- Up Migration
-- Access tokens by which routers recognize connections of API sessions.

create table access_token (
  id             bigint         generated always as identity primary key,
  api_session_id text           collate "C" not null,
  token          text           collate "C" not null,
  created_at     timestamptz(3) not null default now(),
  expires_at     timestamptz(3) not null,
  seen_at        timestamptz(3),
  constraint access_token_api_session_exists foreign key (api_session_id) references api_session on delete cascade
);
create index access_token_of_api_session on access_token (api_session_id);
create index access_token_by_end on access_token (expires_at);
comment on column access_token.seen_at is 'when a router reported a connection under it, to about ten minutes';

create trigger access_token_changes after insert or delete on access_token
  for each row execute function note_certificate();
