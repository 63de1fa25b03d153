-- Up Migration
-- Keys that are not in a set of keys are fetched again after pauses that double, whatever their names are.

alter table signer_key_set add column misses integer not null default 0;
comment on column signer_key_set.misses is 'consecutive fetches for a key that they did not bring';
comment on column signer_key_set.missed is 'of the former release only';
