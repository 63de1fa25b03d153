import { runPeriodically } from '@overlay/process/async'
import type { Logger } from 'pino'
import sql from 'sql-template-tag'
import { type Database, onlyRow } from '../postgres/database.js'

const EVERY_MS = 60 * 60 * 1000
const BATCH = 1000

/** Deletes audit rows past their retention, every hour. Zero days: never. */
export const startPruningAudit = (db: Database, days: number, log: Logger): AsyncDisposable =>
  runPeriodically(EVERY_MS, (signal) =>
    days === 0
      ? Promise.resolve()
      : pruneAudit(db, days, signal).then(
          (removed) => removed > 0 && log.info({ schema: db.schema, days, removed }, 'audit pruned'),
          (err: unknown) => log.warn({ err, schema: db.schema }, 'audit not pruned'),
        ),
  )

/** The role of a service may not delete audit rows. The function does, and refuses fewer than 7 days. */
export async function pruneAudit(db: Database, days: number, signal?: AbortSignal): Promise<number> {
  for (let removed = 0; ; ) {
    const { rows } = await db.query<{ count: number }>(
      sql`select prune_audit(${days}::int, ${BATCH}::int) as count`,
      'prune-audit',
    )
    const { count } = onlyRow(rows)
    removed += count
    if (count < BATCH || signal?.aborted) return removed
  }
}
