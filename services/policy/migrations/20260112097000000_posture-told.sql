-- Up Migration
-- Codes of second factors expire by time. This service reports their expiry; the row stores up to which time it has.

alter table posture_data add column told_at timestamptz(3) not null default '-infinity';
