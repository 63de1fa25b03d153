-- Up Migration
-- The code that has opened an API session: if it is presented again, the session ends.

alter table oidc_grant add column code_digest bytea, add column code_challenge text;
create index oidc_grant_by_code on oidc_grant (code_digest) where code_digest is not null;
comment on column oidc_grant.code_digest is 'sha-256';
comment on column oidc_grant.code_challenge is 'of PKCE: only who knows the verifier ends the session by its code';
