-- Up Migration
-- Nobody calls it any more: hot creates of all kinds are made by one statement.

drop function create_identities(jsonb);
