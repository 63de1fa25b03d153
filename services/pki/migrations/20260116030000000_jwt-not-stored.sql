-- Up Migration
-- The JWT of an enrollment is signed when it is read. The column remains for replicas of the previous release, which read
-- it and write it; the next release drops it.

alter table enrollment alter column jwt set default '';

comment on column enrollment.jwt is 'not used; empty where the release that does not store it inserted the row';
