-- Up Migration
-- Logins replace hashes of weaker parameters. Others that have compared the former hash remain valid.

alter table authenticator add column rehashed bytea;
comment on column authenticator.rehashed is
  'SHA-256 of a former hash followed by `password`, which is another hash of the same password; null: there is none';
