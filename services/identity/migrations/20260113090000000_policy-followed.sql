-- Up Migration
-- Entities of schema policy that identities and API sessions name.

create table known_config_type (
  id   text collate "C" primary key,
  name text collate "C" not null
);
comment on table known_config_type is 'a copy that follows the changes of schema policy; a login locks the rows that its session names';

create index identity_by_hosted_service on identity using gin ((service_hosting_costs || service_hosting_precedences))
 where (service_hosting_costs || service_hosting_precedences) <> '{}';
