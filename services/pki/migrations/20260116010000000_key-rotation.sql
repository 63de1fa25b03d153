-- Up Migration
-- Keys are replaced automatically, and by the operator, who may provide them.

alter table key
  alter column private_key drop not null,
  add column source            text           collate "C" not null default 'generated'
      constraint key_source_is_known check (source in ('generated', 'provided')),
  add column chain             text           not null default '',
  add column cross_certificate text,
  add column trust_domain      text           collate "C",
  add column active_at         timestamptz(3) default now(),
  add column retired_at        timestamptz(3) constraint key_is_dated_when_retired check ((retired_at is not null) = (state = 'retired')),
  add constraint key_without_private_key_is_root check (private_key is not null or role = 'root');

-- the default is for replicas of the previous release, which add active keys only
update key set active_at = case when state = 'next' then null else created_at end;
alter table key
  add constraint key_is_dated_when_active check ((state <> 'next' or active_at is null) and (state <> 'active' or active_at is not null));
create unique index key_is_next_once_per_role on key (role) where state = 'next';

comment on column key.private_key is 'PKCS#8, encrypted with the key secret, which is not in the database; null: the root only anchors trust';
comment on column key.chain is 'PEM of the certificates between a provided one and its root, the lowest first';
comment on column key.cross_certificate is 'of a root: over its key and name, by the root that was active before';
comment on column key.trust_domain is 'of the network, when the authority was added; null: its certificate names it';
comment on column key.active_at is 'null: never; a root that only anchors the certificate of the server is retired from the start';

alter table token_key
  add column source text collate "C" not null default 'generated'
      constraint token_key_source_is_known check (source in ('generated', 'provided'));
