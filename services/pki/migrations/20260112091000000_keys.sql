-- Up Migration
-- Authorities and the gateways' key. One key of each role is active. The next one is published before it is used, and a
-- retired authority remains published until its certificates have expired.

create table key (
  id          text           collate "C" primary key,
  role        text           collate "C" not null constraint key_role_is_known check (role in ('root', 'signing', 'server')),
  state       text           collate "C" not null constraint key_state_is_known check (state in ('next', 'active', 'retired')),
  certificate text           not null,
  private_key text           not null,
  not_after   timestamptz(3) not null,
  created_at  timestamptz(3) not null default now(),
  updated_at  timestamptz(3) not null default now()
);
create unique index key_is_active_once_per_role on key (role) where state = 'active';

comment on column key.certificate is 'PEM; a server certificate is replaced when it is renewed, its key stays';
comment on column key.private_key is 'PKCS#8, encrypted with the key secret, which is not in the database';
