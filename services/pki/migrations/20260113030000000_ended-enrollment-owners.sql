-- Up Migration
-- A router and the identity of its tunneler have the same id: the end of one is not the end of the other.

alter table ended_enrollment
  add column owner_kind text collate "C"
      constraint ended_enrollment_owner_kind_is_known
      check (owner_kind in ('identities', 'edge-routers', 'transit-routers'));

comment on column ended_enrollment.owner_kind is 'null: kept by a release that did not store it';
