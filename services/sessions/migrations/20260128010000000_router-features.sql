-- Up Migration
alter table presence add column features jsonb not null default '{}';
comment on column presence.features is 'what the router announces; {}: a replica of 0.1.0 has written the row';
