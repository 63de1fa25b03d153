-- Up Migration
-- Identities whose data flows are traced, and until when.

create table identity_trace (
  identity_id text           collate "C" primary key references identity on delete cascade,
  trace_id    text           not null,
  channels    text[]         not null,
  until       timestamptz(3) not null
);
comment on column identity_trace.channels is 'of what routers do for a flow, such as selectPath; empty: of all';
