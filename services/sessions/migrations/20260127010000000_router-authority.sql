-- Up Migration
-- What routers may say about terminators and links.

alter table terminator add column is_by_router boolean not null default false;
comment on column terminator.is_by_router is
  'its router created it without a session, and may as long as an administrator''s terminator for router and service exists';
create index terminator_by_router on terminator (router_id, service_id) where is_by_router;

-- Such rows were not marked. The audit names their router as the author.
update terminator set is_by_router = true
 where session_id is null and not is_system
   and exists (select from audit
                where audit.kind = 'terminators' and audit.entity_id = terminator.id and before is null
                  and identity_id = terminator.router_id);
