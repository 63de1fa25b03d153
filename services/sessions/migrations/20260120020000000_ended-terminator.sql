-- Up Migration
-- Terminators that have ended with their bind session: their circuits must end, too, also if the process that has deleted
-- the terminators cannot end them.

create table ended_terminator (
  id       text           collate "C" primary key,
  ended_at timestamptz(3) not null
);
create index ended_terminator_ended_at on ended_terminator (ended_at);
