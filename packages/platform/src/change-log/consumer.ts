import { type Change, Fault, ownContext, type Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import sql from 'sql-template-tag'
import type { Db, Tx } from '../postgres/database.js'
import type { ChangeLog, RowChange } from './change-log.js'
import { isSamePosition, startFollower } from './follower.js'
import { applyEach, isTransient, rehearse } from './isolate.js'
import { type LoadedRows, withLoadedRows } from './loaded-rows.js'
import { isUnknown, poisonOf } from './poison.js'
import type { Source } from './source.js'

/**
 * What another service's changes do to our own rows, in the transaction that saves the position. The row changes that
 * a function returns are appended to our own change log.
 */
export interface Effects {
  readonly kinds: readonly string[]
  /** May it do anything to our rows? What may not takes no transaction of its own. Absent: everything may. */
  concerns?(change: Change): boolean | Promise<boolean>
  apply(tx: Tx, changes: readonly Change[], upto: Position): Promise<readonly RowChange[]>
  /**
   * The row of this change may be there, but its owner cannot tell it, or `apply` refuses it: what is safe then. Absent:
   * it is passed over.
   */
  unknown?(tx: Tx, change: Change, upto: Position): Promise<readonly RowChange[]>
  /**
   * All rows: at the first start, after a restored backup, or too far behind. What has been deleted since the position
   * that was followed is told by nobody: it is what is missing among them.
   */
  reload(tx: Tx, rows: LoadedRows, upto: Position): Promise<readonly RowChange[]>
  /** Called after each commit of the two. */
  committed?(): void
}

/** What a transaction for each change would cost, one for many saves; far below what a revocation may take. */
const GATHER_MS = 20
const TRIES = 3
const PROOF_MS = 60_000
const LOAD_MS = 600_000 // a transaction, of which the last part holds the followed row

export interface Consumer extends AsyncDisposable {
  /** Resolves when the effects of this position are committed; asks the owner at once. TIMEOUT when aborted. */
  waitFor(position: Position, signal: AbortSignal): Promise<void>
  /** The same for all that the owner had at the time of the call. */
  catchUp(signal: AbortSignal): Promise<void>
}

/**
 * Follows a source until disposed, one replica at a time. A crash repeats no effect: batch and position commit together.
 * The position past changes without any effect is saved at leisure.
 */
export function startConsumer(
  changeLog: ChangeLog,
  source: Source,
  effects: Effects,
  log: Logger,
  { leisureMs = 1000 }: { readonly leisureMs?: number } = {},
): Consumer {
  const { schema } = source
  const { db } = changeLog
  const stop = new AbortController()
  const poison = poisonOf(source, log, stop.signal)
  let failure: { readonly at: number; readonly times: number } | undefined // where the same changes fail again
  let passedAt = Number.NEGATIVE_INFINITY // when a change last took effect
  const concerns = (change: Change) => effects.concerns?.(change) ?? true
  let savedAt = Number.NEGATIVE_INFINITY
  const context = ownContext(new AbortController().signal)

  /** Holds the row before the effects look at anything: who commits under `for share` of it is seen by them. */
  const holding = async (
    tx: Tx,
    upto: Position,
    work: (stored: Position | undefined) => Promise<readonly RowChange[] | undefined>,
  ): Promise<Held> => {
    const stored = await positionOf(tx, schema, 'held')
    const changes = await work(stored)
    if (!changes) return { result: stored, changes: [] } // another replica was faster: its position is the answer
    await tx.query(
      sql`update followed set timeline = ${upto.timeline}, number = ${upto.number} where schema = ${schema}`,
      'save-followed',
    )
    return { result: upto, changes }
  }
  const write = async (work: (tx: Tx) => Promise<Held>, deadline?: Date): Promise<Position | undefined> => {
    const { result } = await changeLog.write({ ...context, deadline }, work)
    savedAt = performance.now()
    effects.committed?.()
    return result
  }

  /**
   * Changes that fail again and again are taken as their rows are now. Only if others pass, lately or in their company:
   * else it is not the changes that are wrong.
   */
  async function aloneWhatFails(changes: readonly Change[], upto: Position): Promise<readonly Change[]> {
    const failed = await rehearse(db, effects, changes, upto)
    const [first] = failed.values()
    const othersPass = failed.size < changes.length || performance.now() - passedAt < PROOF_MS
    if (first !== undefined && !othersPass) throw first
    if (failed.size === changes.length) passedAt = Number.NEGATIVE_INFINITY // the next one needs another proof
    const instead: Change[] = []
    for (const change of changes)
      instead.push(failed.has(change) ? await poison.reload(change, failed.get(change)) : change)
    return instead
  }

  const follower = startFollower(
    source,
    {
      kinds: effects.kinds,
      gatherMs: GATHER_MS,
      mixesLoads: false,

      async start() {
        await db.query(sql`insert into followed (schema) values (${schema}) on conflict do nothing`)
        return positionOf(db, schema)
      },

      replace({ upto, pages }, known) {
        let isRead = false
        return write(
          (tx) => {
            // a transaction may be repeated, and the pages are read once: the follower loads again
            if (isRead) throw new Fault('UNAVAILABLE', 'a load cannot be repeated')
            isRead = true
            return withLoadedRows(tx, pages, (rows) =>
              holding(tx, upto, async (stored) =>
                stored && !isSamePosition(stored, known) ? undefined : effects.reload(tx, rows, upto),
              ),
            )
          },
          new Date(Date.now() + LOAD_MS),
        )
      },

      async take(changes, upto) {
        const does = await Promise.all(changes.map(concerns))
        const concerned = changes.filter((_, i) => does[i])
        if (concerned.length === 0 && performance.now() - savedAt < leisureMs) return upto
        let standsAt = 0
        const taking = (apply: (tx: Tx, fresh: readonly Change[]) => Promise<readonly RowChange[]>) =>
          write((tx) =>
            holding(tx, upto, async (stored) => {
              if (stored?.timeline !== upto.timeline || stored.number >= upto.number) return undefined
              standsAt = stored.number
              const fresh = concerned.filter(({ number }) => number > stored.number)
              return fresh.length > 0 ? apply(tx, fresh) : []
            }),
          )
        if (concerned.some(isUnknown))
          return taking((tx, fresh) => applyEach(tx, effects, fresh, upto, poison))
        try {
          const at = await taking((tx, fresh) => effects.apply(tx, fresh, upto))
          failure = undefined
          if (concerned.length > 0) passedAt = performance.now()
          return at
        } catch (err) {
          if (isTransient(err)) throw err
          failure = { at: standsAt, times: failure?.at === standsAt ? failure.times + 1 : 1 }
          if (failure.times < TRIES) throw err
        }
        const fresh = concerned.filter(({ number }) => number > standsAt)
        const instead = await aloneWhatFails(fresh, upto)
        return taking((tx) => applyEach(tx, effects, instead, upto, poison))
      },
    },
    log,
  )
  return {
    waitFor: follower.waitFor,
    catchUp: follower.catchUp,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await follower[Symbol.asyncDispose]()
    },
  }
}

/** Where the schema is followed to after a transaction, and what that changed. */
interface Held {
  readonly result: Position | undefined
  readonly changes: readonly RowChange[]
}

/** Up to where the effects of another schema are committed. */
export const consumedPosition = (db: Db, schema: string): Promise<Position | undefined> =>
  positionOf(db, schema)

async function positionOf(db: Db, schema: string, way?: 'held'): Promise<Position | undefined> {
  const { rows } = await db.query<{ timeline: string | null; number: number }>(
    sql`select timeline, number from followed where schema = ${schema} ${way ? sql`for update` : sql``}`,
    way ? 'hold-followed' : 'followed',
  )
  const [row] = rows
  return row?.timeline ? { timeline: row.timeline, number: row.number } : undefined
}
