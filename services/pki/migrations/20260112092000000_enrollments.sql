-- Up Migration
-- Enrollments: one-time permissions to obtain a credential.

create table enrollment (
  id                text           collate "C" primary key,
  token             text           collate "C" not null constraint enrollment_token_is_unique unique,
  method            text           collate "C" not null
                    constraint enrollment_method_is_known check (method in ('ott', 'ottca', 'updb', 'erott', 'trott')),
  identity_id       text           collate "C",
  edge_router_id    text           collate "C" constraint enrollment_is_outstanding_once_per_edge_router unique,
  transit_router_id text           collate "C" constraint enrollment_is_outstanding_once_per_transit_router unique,
  ca_id             text           collate "C",
  username          text           collate "C",
  expires_at        timestamptz(3) not null,
  jwt               text           not null,
  claimed_until     timestamptz(3),
  claim_hash        text           collate "C",
  tags              jsonb          not null default '{}',
  is_system         boolean        not null default false,
  created_at        timestamptz(3) not null default now(),
  updated_at        timestamptz(3) not null default now(),
  constraint enrollment_is_of_one_entity check (num_nonnulls(identity_id, edge_router_id, transit_router_id) = 1),
  constraint enrollment_is_outstanding_once_per_identity unique (identity_id, method)
);

comment on column enrollment.claimed_until is 'somebody is redeeming it; when that time has passed anybody with the token may try again';
comment on column enrollment.claim_hash is 'of what is being redeemed: the public key, the user name';

-- Redeemed and deleted enrollments, for as long as their owner exists: a repeated request does not create them again.
create table ended_enrollment (
  id       text collate "C" primary key,
  owner_id text collate "C" not null
);
create index ended_enrollment_owner_id on ended_enrollment (owner_id);
