-- Up Migration
-- Time of the last code of a second factor, for posture checks.

alter table api_session add column mfa_passed_at timestamptz(3);
