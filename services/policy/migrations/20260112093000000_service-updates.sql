-- Up Migration
-- Time of the last change of each identity's list of services. The replica that holds the lock writes, all read.

create table service_update (
  identity_id text           collate "C" primary key,
  changed_at  timestamptz(3) not null,
  batch       bigint         not null
);
create index service_update_by_batch on service_update (batch);
comment on table service_update is 'no row: nothing has changed for this identity since service_update_head.everybody_at';

create table service_update_head (
  only_row          boolean primary key default true
                    constraint service_update_head_has_one_row check (only_row),
  batch             bigint         not null default 0,
  everybody_at      timestamptz(3),
  policy_timeline   uuid,
  policy_number     bigint,
  identity_timeline uuid,
  identity_number   bigint
);
comment on column service_update_head.batch is 'of the last write; each has its own';
comment on column service_update_head.policy_number is 'changes of both schemas up to here are in the rows';
insert into service_update_head default values;
