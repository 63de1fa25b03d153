-- Up Migration
-- What is too old is found without reading what is kept.
create index unroute_ended_at on unroute (ended_at);
