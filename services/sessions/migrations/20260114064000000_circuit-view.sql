-- Up Migration
-- Circuits as the fabric API lists them.

drop view circuit_view;
create view circuit_view as
select id, client_id, service_id as service, terminator_id as terminator, router_ids, link_ids,
       jsonb_build_object('serviceId', service_id, 'clientId', identity_id, 'hostId', host_id) as tags,
       false as is_system, created_at, updated_at
  from circuit;
