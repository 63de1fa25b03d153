-- Up Migration
-- Tokens are bound to the certificates of the identity and of the session, not to those of the connection of the login.

alter table oidc_login alter column fingerprints set default '{}';
comment on column oidc_login.fingerprints is 'unused since 0.2.0';
comment on column oidc_grant.fingerprints is 'of the certificate of the login, first; empty: a login by another method';
