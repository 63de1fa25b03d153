-- Up Migration
-- Codes of second factors end by time, of which nobody tells but this service: up to when it has.

alter table posture_data add column told_at timestamptz(3) not null default '-infinity';
