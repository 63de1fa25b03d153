import { runPeriodically } from '@overlay/process/async'
import type { Logger } from 'pino'
import sql from 'sql-template-tag'
import type { Database } from '../postgres/database.js'

const KEPT_MS = 24 * 60 * 60 * 1000
const EVERY_MS = 10 * 60 * 1000
const BATCH = 1000

/** Deletes change rows past their retention, every ten minutes. */
export const startPruningChanges = (db: Database, log: Logger): AsyncDisposable =>
  runPeriodically(EVERY_MS, (signal) =>
    pruneChanges(db, KEPT_MS, signal).catch((err: unknown) => {
      log.warn({ err, schema: db.schema }, 'old changes not removed')
    }),
  )

/** Oldest first and without gaps, so that the rest stays dense. One replica at a time; the others do nothing. */
export async function pruneChanges(db: Database, keptMs: number, signal?: AbortSignal): Promise<number> {
  for (let removed = 0; ; ) {
    const { rowCount } = await db.query(sql`
      with turn as materialized (
           select pg_try_advisory_xact_lock(hashtextextended(${`reap ${db.schema}`}, 0)) as ours),
           oldest as (
           select number, at < now() - make_interval(secs => ${keptMs / 1000}) as expired
             from change where (select ours from turn) order by number limit ${BATCH} for update skip locked)
      delete from change where number in (
             select number from oldest
              where expired and number < coalesce((select min(number) from oldest where not expired), number + 1))`)
    removed += rowCount ?? 0
    if ((rowCount ?? 0) < BATCH || signal?.aborted) return removed
  }
}
