-- Up Migration
-- Jobs on all schemas, one at a time for all replicas. Unlogged: a run does not outlive the server, and snapshots leave
-- it out.

create unlogged table job (
  name       text           primary key constraint job_is_known check (name in ('integrity', 'snapshot')),
  run        uuid           not null,
  is_fixing  boolean        not null,
  started_at timestamptz(3) not null,
  ended_at   timestamptz(3),
  error      text
);
comment on column job.run is 'of the last run; while it is under way its replica holds an advisory lock of this name';

create unlogged table finding (
  id          bigint  generated always as identity primary key,
  run         uuid    not null,
  description text    not null,
  is_fixed    boolean not null
);
comment on table finding is 'of the last integrity run';
