-- Up Migration
-- Rows are deleted with their identity. Those of identities that are already deleted go here; heartbeats repeat the others.

truncate identity_connection;
