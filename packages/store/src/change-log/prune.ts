import { runPeriodically } from '@overlay/process/async'
import type { Logger } from 'pino'
import sql from 'sql-template-tag'
import { KEEP_CHANGES_MS, PRUNE_AUDIT_MS, PRUNE_CHANGES_MS, PRUNED_ROWS } from '../limits.js'
import { type Database, onlyRow } from '../postgres/database.js'

/** Deletes change rows past their retention, every ten minutes. */
export const startPruningChanges = (db: Database, log: Logger): AsyncDisposable =>
  runPeriodically(PRUNE_CHANGES_MS, (signal) =>
    pruneChanges(db, KEEP_CHANGES_MS, signal).catch((err: unknown) => {
      log.warn({ err, schema: db.schema }, 'old changes not removed')
    }),
  )

/** Deletes audit rows past their retention, every hour. Zero days: never. */
export const startPruningAudit = (db: Database, days: number, log: Logger): AsyncDisposable =>
  runPeriodically(PRUNE_AUDIT_MS, async (signal) => {
    if (days === 0) return
    try {
      const removed = await pruneAudit(db, days, signal)
      if (removed > 0) log.info({ schema: db.schema, days, removed }, 'audit pruned')
    } catch (err) {
      log.warn({ err, schema: db.schema }, 'audit not pruned')
    }
  })

/** Oldest first and without gaps, so that the rest stays dense. One replica at a time; the others do nothing. */
export const pruneChanges = (db: Database, keepMs: number, signal?: AbortSignal): Promise<number> =>
  inBatches(signal, async () => {
    const { rowCount } = await db.query(sql`
      with turn as materialized (
           select pg_try_advisory_xact_lock(hashtextextended(${`reap ${db.schema}`}, 0)) as ours),
           oldest as (
           select number, at < now() - make_interval(secs => ${keepMs / 1000}) as expired
             from change where (select ours from turn) order by number limit ${PRUNED_ROWS} for update skip locked)
      delete from change where number in (
             select number from oldest
              where expired and number < coalesce((select min(number) from oldest where not expired), number + 1))`)
    return rowCount ?? 0
  })

/** The role of a service may not delete audit rows. The function does, and refuses fewer than 7 days. */
export const pruneAudit = (db: Database, days: number, signal?: AbortSignal): Promise<number> =>
  inBatches(signal, async () => {
    const { rows } = await db.query<{ count: number }>(
      sql`select prune_audit(${days}::int, ${PRUNED_ROWS}::int) as count`,
      'prune-audit',
    )
    return onlyRow(rows).count
  })

/** Deletes until a batch is not full. Returns how many rows were deleted. */
async function inBatches(
  signal: AbortSignal | undefined,
  deleteSome: () => Promise<number>,
): Promise<number> {
  for (let deleted = 0; ; ) {
    const count = await deleteSome()
    deleted += count
    if (count < PRUNED_ROWS || signal?.aborted) return deleted
  }
}
