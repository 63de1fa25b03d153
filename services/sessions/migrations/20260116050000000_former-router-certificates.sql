-- Certificates that were replaced, until the router connects with the one that replaced them.
alter table router add column former_fingerprints text[] not null default '{}';
