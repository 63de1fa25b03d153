-- Up Migration
-- The hosts in the certificates of routers: no two routers have the same one.

alter table router add column certificate_hosts text[] collate "C";
create index router_by_certificate_host on router using gin (certificate_hosts);
comment on column router.certificate_hosts is 'canonical, without loopback; null: not read from cert_pem yet';
