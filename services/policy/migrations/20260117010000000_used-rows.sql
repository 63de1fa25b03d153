-- Up Migration
-- Whether other rows name a row that is about to be deleted. Volatile: each call sees what has been committed by then, so
-- also what was committed while the statement of the caller locked the row.

create function service_is_used(id text) returns boolean language plpgsql as $$
begin
  return exists (select from service_policy where service_roles @> array['@' || $1])
      or exists (select from service_edge_router_policy where service_roles @> array['@' || $1])
      or exists (select from service_config where service_id = $1);
end $$;

create function config_is_used(id text) returns boolean language plpgsql as $$
begin
  return exists (select from service where configs @> array[$1])
      or exists (select from service_config where config_id = $1);
end $$;

create function config_type_is_used(id text) returns boolean language plpgsql as $$
begin
  return exists (select from config where config_type_id = $1);
end $$;

create function posture_check_is_used(id text) returns boolean language plpgsql as $$
begin
  return exists (select from service_policy where posture_check_roles @> array['@' || $1]);
end $$;
