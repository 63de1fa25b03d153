import { randomUUID } from 'node:crypto'
import { Fault, type Finding, retryAfter } from '@overlay/rpc'
import {
  type AdvisoryLock,
  type Database,
  type Db,
  isLocked,
  onlyRow,
  openAdvisoryLock,
} from '@overlay/store/postgres'
import sql from 'sql-template-tag'

export type JobName = 'integrity' | 'snapshot'

/** A run of a job in this replica. The lock keeps other replicas from the same job. */
export interface Run {
  readonly id: string
  readonly job: JobName
  readonly lock: AdvisoryLock
}

export interface LastRun {
  readonly id: string
  readonly isFixing: boolean
  readonly startedAt: Date
  readonly endedAt: Date | null
  readonly error: string | null
}

const PAUSE_SECONDS: Readonly<Record<JobName, number>> = { integrity: 0, snapshot: 60 }

/**
 * Begins a run, or refuses with RATE_LIMITED: during a run, and for a pause after a successful one. The lock is taken
 * before the row that names it is stored, so a run whose lock is free is over, whatever its row says.
 * differs: one run at a time over all replicas.
 */
export async function beginRun(db: Database, url: string, job: JobName, isFixing: boolean): Promise<Run> {
  await endDeadRun(db, job)
  const { rows } = await db.query<{ seconds: number | null }>(sql`
    select extract(epoch from ended_at + make_interval(secs => ${PAUSE_SECONDS[job]}) - clock_timestamp())::float8
             as seconds
      from job where name = ${job} and not (${mayBegin(job)})`)
  if (rows[0]) throw retryAfter(rows[0].seconds ?? 0, 'RATE_LIMITED') // the end of a running one is not known
  const id = randomUUID()
  const lock = await openAdvisoryLock(url, db.schema, id)
  try {
    const { rowCount } = await db.query(sql`
      insert into job (name, run, is_fixing, started_at) values (${job}, ${id}, ${isFixing}, clock_timestamp())
          on conflict (name) do update
         set run = excluded.run, is_fixing = excluded.is_fixing, started_at = excluded.started_at,
             ended_at = null, error = null
       where ${mayBegin(job)}`)
    if (!rowCount) throw new Fault('RATE_LIMITED')
    return { id, job, lock }
  } catch (err) {
    await lock[Symbol.asyncDispose]()
    throw err
  }
}

const mayBegin = (job: JobName) => sql`
  job.ended_at is not null
  and (job.error is not null or job.ended_at <= clock_timestamp() - make_interval(secs => ${PAUSE_SECONDS[job]}))`

/** Ends the row first, then releases the lock. */
export async function endRun(db: Db, { id, job, lock }: Run, error: string | undefined): Promise<void> {
  try {
    await db.query(sql`
      update job set ended_at = clock_timestamp(), error = ${error ?? null}
       where name = ${job} and run = ${id} and ended_at is null`)
  } finally {
    await lock[Symbol.asyncDispose]()
  }
}

/** The last run. Ends it if its replica has died. */
export async function lastRun(db: Db, job: JobName): Promise<LastRun | undefined> {
  await endDeadRun(db, job)
  const { rows } = await db.query<LastRun>(sql`
    select run as id, is_fixing as "isFixing", started_at as "startedAt", ended_at as "endedAt", error
      from job where name = ${job}`)
  return rows[0]
}

async function endDeadRun(db: Db, job: JobName): Promise<void> {
  await db.query(sql`
    update job set ended_at = clock_timestamp(), error = 'the process that was at it is gone'
     where name = ${job} and ended_at is null and not ${isLocked(sql`run::text`)}`)
}

/** Those of these runs whose replicas hold the lock. */
export async function activeRuns(db: Db, runs: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ run: string }>(sql`
    select run from unnest(${runs}::text[]) as run where ${isLocked(sql`run`)}`)
  return new Set(rows.map(({ run }) => run))
}

/** Does nothing when another run has begun meanwhile. */
export async function addFindings(db: Db, { id }: Run, findings: readonly Finding[]): Promise<void> {
  await db.query(sql`
    insert into finding (run, description, is_fixed)
    select ${id}, description, fixed
      from jsonb_to_recordset(${JSON.stringify(findings)}::jsonb) as (description text, fixed boolean)
     where exists (select from job where run = ${id} and ended_at is null)`)
}

export async function removeOtherFindings(db: Db, { id }: Run): Promise<void> {
  await db.query(sql`delete from finding where run <> ${id}`)
}

export async function findingsOf(db: Db, id: string): Promise<readonly Finding[]> {
  const { rows } = await db.query<Finding>(
    sql`select description, is_fixed as fixed from finding where run = ${id} order by id`,
  )
  return rows
}

/** Begins a transaction on the connection of the lock, whose snapshot other connections can use until it ends. */
export async function beginSnapshot({
  lock,
}: Run): Promise<{ readonly snapshot: string; readonly at: Date }> {
  await lock.query(sql`begin isolation level repeatable read, read only`)
  return onlyRow(
    await lock.query<{ snapshot: string; at: Date }>(
      sql`select pg_export_snapshot() as snapshot, transaction_timestamp() as at`,
    ),
  )
}

export const endSnapshot = ({ lock }: Run) => lock.query(sql`commit`)
