-- Up Migration
-- Sets in the built-in config types declare their list type one level deeper. Forms generated from these schemas, such as
-- the web console's, then omit an unset list instead of sending an empty one.

do $$
declare
  type_id text;
  at text[];
begin
  for type_id, at in
    select id, string_to_array(path || set, '/')
      from (values ('g7cIWbcGg', 'properties/', array['protocols', 'addresses', 'portRanges']),
                   ('NH5p4FpGR', 'properties/',
                    array['allowedProtocols', 'allowedAddresses', 'allowedPortRanges', 'allowedSourceAddresses']),
                   ('host.v2', 'definitions/terminator/properties/',
                    array['allowedProtocols', 'allowedAddresses', 'allowedPortRanges', 'allowedSourceAddresses'])
           ) as known (id, path, sets), unnest(sets) as set
  loop
    update config_type
       set schema = jsonb_set(schema, at, jsonb_build_object('allOf', jsonb_build_array(
             (schema #> at) - 'items',
             jsonb_build_object('items', schema #> at -> 'items'))))
     where id = type_id and schema #> at ? 'items';
  end loop;
end $$;

-- What the forms cannot draw, and what was refused although every client takes it.
update config_type
   set schema = jsonb_set(schema, '{properties,protocol}', '{"type": "string", "enum": ["tcp", "udp"]}', false)
 where name = 'ziti-tunneler-server.v1';

update config_type
   set schema = schema #- '{definitions,proxy,additionalProperties}'
                       #- '{definitions,listenOptions,properties,maxConnections,maximum}'
 where name in ('host.v1', 'host.v2');
