-- Up Migration
-- For reads of the audit, newest or oldest first: all changes, those of an entity, those of an author.

create index audit_by_time on audit (at, id);
create index audit_by_entity on audit (entity_id, at, id);
create index audit_by_author on audit (identity_id, at, id);
