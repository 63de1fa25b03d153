import { pushAll } from '@overlay/process/async'
import { type Change, Fault, type Position } from '@overlay/rpc'
import sql from 'sql-template-tag'
import type { Database, Tx } from '../postgres/database.js'
import { failureOf, isAway, isConflict } from '../postgres/database-failure.js'
import type { RowChange } from './append.js'
import type { Effects } from './effects.js'
import { isUnknown, type Poison } from './poison.js'

type Applying = Pick<Effects, 'apply' | 'unknown'>

const rollback = new Error('rolled back on purpose')

/** Runs a transaction and rolls it back. */
async function rolledBack(db: Database, work: (tx: Tx) => Promise<void>): Promise<void> {
  const end = async (tx: Tx): Promise<never> => {
    await work(tx)
    throw rollback
  }
  await db.transaction(undefined, end).catch((err: unknown) => {
    if (err !== rollback) throw err
  })
}

/** Returns the changes that fail when each is tried alone, and rolls all of it back. */
export async function rehearse(
  db: Database,
  effects: Applying,
  changes: readonly Change[],
  upto: Position,
): Promise<ReadonlyMap<Change, unknown>> {
  const failed = new Map<Change, unknown>()
  await rolledBack(db, async (tx) => {
    for (const change of changes) {
      const outcome = await attempt(tx, () => applyOne(tx, effects, change, upto))
      if ('err' in outcome) failed.set(change, outcome.err)
    }
  })
  return failed
}

/** Applies one after the other. One that fails is applied as unknown; if that fails too it is skipped. */
export async function applyEach(
  tx: Tx,
  effects: Applying,
  changes: readonly Change[],
  upto: Position,
  poison: Poison,
): Promise<readonly RowChange[]> {
  const rows: RowChange[] = []
  for (const change of changes) {
    let outcome = await attempt(tx, () => applyOne(tx, effects, change, upto))
    if ('err' in outcome && !isUnknown(change)) {
      const unknown = poison.unknown(change, outcome.err)
      outcome = await attempt(tx, () => applyOne(tx, effects, unknown, upto))
    }
    if ('err' in outcome) poison.unknown(change, outcome.err)
    else pushAll(rows, outcome.rows)
  }
  return rows
}

const applyOne = async (
  tx: Tx,
  effects: Applying,
  change: Change,
  upto: Position,
): Promise<readonly RowChange[]> =>
  isUnknown(change) ? ((await effects.unknown?.(tx, change, upto)) ?? []) : effects.apply(tx, [change], upto)

/** Rolls back the statements of work that fails. Failures that do not depend on the change are thrown. */
async function attempt(
  tx: Tx,
  work: () => Promise<readonly RowChange[]>,
): Promise<{ readonly rows: readonly RowChange[] } | { readonly err: unknown }> {
  await tx.query(sql`savepoint one_change`)
  try {
    const rows = await work()
    await tx.query(sql`release savepoint one_change`)
    return { rows }
  } catch (err) {
    if (isTransient(err)) throw err
    await tx.query(sql`rollback to savepoint one_change`)
    return { err }
  }
}

/** True when the failure does not depend on the change: the same change may succeed later. */
export const isTransient = (err: unknown): boolean =>
  isAway(failureOf(err).error) ||
  isConflict(err) ||
  (err instanceof Fault &&
    (err.code === 'OUT_OF_RANGE' || err.code === 'RATE_LIMITED' || err.code === 'SERVER_TOO_MANY_REQUESTS'))
