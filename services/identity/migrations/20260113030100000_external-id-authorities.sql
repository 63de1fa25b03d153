-- Up Migration
-- The authority that vouches for an identity's external id: no other one may.

create table external_id_authority (
  identity_id text collate "C" primary key references identity on delete cascade,
  external_id text collate "C" not null,
  ca_id       text collate "C" not null references known_ca on delete cascade
);
create index external_id_authority_ca_id on external_id_authority (ca_id);

comment on column external_id_authority.external_id is 'the row counts only while the identity has this external id';
