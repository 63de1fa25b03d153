-- Up Migration
-- The author of a change as it was then: an identity may be renamed or deleted later. Null in rows of earlier versions.

alter table audit add column identity_name text,
                  add column source_address text; -- IP address of the client; empty: work of the system or of a router
