-- Up Migration
-- When the code of a second factor was last given, for posture checks that ask for it.

alter table api_session add column mfa_passed_at timestamptz(3);
