-- Up Migration
-- Tokens of sessions that have ended, for routers: they know sessions by token, and changes have only the id.

create table ended_session (
  id       text           collate "C" primary key,
  token    text           collate "C" not null,
  ended_at timestamptz(3) not null default now()
);
create index ended_session_ended_at on ended_session (ended_at);

create function remember_ended() returns trigger language plpgsql set search_path from current as $$
begin
  insert into ended_session (id, token) select id, token from changed;
  return null;
end $$;
create trigger session_has_ended after delete on session referencing old table as changed
  for each statement execute function remember_ended();
