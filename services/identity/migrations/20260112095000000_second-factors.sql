create table second_factor (
  identity_id text        collate "C" primary key references identity on delete cascade,
  id          text        collate "C" not null,
  is_verified boolean     not null default false,
  sealed      text        not null,
  used_steps  integer[]   not null default '{}',
  failures    integer     not null default 0,
  failed_at   timestamptz not null default '-infinity',
  created_at  timestamptz(3) not null default now(),
  updated_at  timestamptz(3) not null default now()
);
comment on column second_factor.sealed is 'secret and recovery codes, encrypted with the key secret';
comment on column second_factor.used_steps is 'steps of 30 s whose code has been accepted: each counts once';
