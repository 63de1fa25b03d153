import { type Change, Fault, ownContext, type Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import sql from 'sql-template-tag'
import { CONSUMER_LOAD_MS, CONSUMER_TRIES, GATHER_MS, RECENT_SUCCESS_MS } from '../limits.js'
import type { Db, Tx } from '../postgres/database.js'
import { applyEach, isTransient, rehearse } from './apply-one-by-one.js'
import type { ChangeLog, RowChange } from './change-log.js'
import type { Effects } from './effects.js'
import { type Follower, startFollower } from './follower.js'
import { withLoadedRows } from './loaded-rows.js'
import { isUnknown, poisonOf } from './poison.js'
import { isSamePosition } from './positions.js'
import type { Source } from './source.js'

/** Waits resolve when the effects of the position are committed. */
export interface Consumer extends Pick<Follower, 'waitFor' | 'catchUp'>, AsyncDisposable {}

/**
 * Follows a source until disposed, one replica at a time. A crash repeats no effect: effects and position commit
 * together. A position without new effects is saved after `idleSaveMs`.
 */
export function startConsumer(
  changeLog: ChangeLog,
  source: Source,
  effects: Effects,
  log: Logger,
  { idleSaveMs = 1000 }: { readonly idleSaveMs?: number } = {},
): Consumer {
  const { schema } = source
  const { db } = changeLog
  const stop = new AbortController()
  const poison = poisonOf(source, log, stop.signal)
  let failure: { readonly at: number; readonly times: number } | undefined // the same changes failing again
  let succeededAt = Number.NEGATIVE_INFINITY // the last change that took effect
  const concerns = (change: Change) => effects.concerns?.(change) ?? true
  let savedAt = Number.NEGATIVE_INFINITY
  const context = ownContext(new AbortController().signal)

  /** Locks the row before the effects read anything: they see the commits of transactions that locked it for share. */
  const withLock = async (
    tx: Tx,
    upto: Position,
    work: (stored: Position | undefined) => Promise<readonly RowChange[] | undefined>,
  ): Promise<Step> => {
    const stored = await positionOf(tx, schema, 'lock')
    const changes = await work(stored)
    if (!changes) return { result: stored, changes: [] } // another replica was faster: its position is the answer
    await tx.query(
      sql`update followed set timeline = ${upto.timeline}, number = ${upto.number} where schema = ${schema}`,
      'save-followed',
    )
    return { result: upto, changes }
  }
  const write = async (work: (tx: Tx) => Promise<Step>, deadline?: Date): Promise<Position | undefined> => {
    try {
      const { result } = await changeLog.write({ ...context, deadline }, work)
      savedAt = performance.now()
      return result
    } finally {
      effects.committed?.()
    }
  }

  /**
   * Replaces changes that fail again and again by their current rows. Only if other changes succeed, recently or among
   * these: otherwise the failure is not due to the changes.
   */
  async function replaceFailing(changes: readonly Change[], upto: Position): Promise<readonly Change[]> {
    const failed = await rehearse(db, effects, changes, upto)
    const [first] = failed.values()
    const othersSucceed = failed.size < changes.length || performance.now() - succeededAt < RECENT_SUCCESS_MS
    if (first !== undefined && !othersSucceed) throw first
    if (failed.size === changes.length) succeededAt = Number.NEGATIVE_INFINITY // the next failure needs another success
    const replaced: Change[] = []
    for (const change of changes)
      replaced.push(failed.has(change) ? await poison.reload(change, failed.get(change)) : change)
    return replaced
  }

  const follower = startFollower(
    source,
    {
      name: `effects in ${db.schema}`,
      kinds: effects.kinds,
      loadedKinds: effects.kinds,
      gatherMs: GATHER_MS,
      mixesLoads: false,

      async start() {
        await db.query(sql`insert into followed (schema) values (${schema}) on conflict do nothing`)
        return positionOf(db, schema)
      },

      replace({ upto, pages }, before) {
        let isRead = false
        return write(
          (tx) => {
            // pages can be read once: when the transaction is repeated the follower loads again
            if (isRead) throw new Fault('UNAVAILABLE', 'a load cannot be repeated')
            isRead = true
            return withLoadedRows(tx, pages, (rows) =>
              withLock(tx, upto, async (stored) =>
                stored && !isSamePosition(stored, before) ? undefined : effects.reload(tx, rows, upto),
              ),
            )
          },
          new Date(Date.now() + CONSUMER_LOAD_MS),
        )
      },

      async take(changes, upto) {
        const relevant = changes.filter(concerns)
        if (relevant.length === 0 && performance.now() - savedAt < idleSaveMs) return upto
        let startAt = 0
        const applyWith = (apply: (tx: Tx, fresh: readonly Change[]) => Promise<readonly RowChange[]>) =>
          write((tx) =>
            withLock(tx, upto, async (stored) => {
              if (stored?.timeline !== upto.timeline || stored.number >= upto.number) return undefined
              startAt = stored.number
              const fresh = relevant.filter(({ number }) => number > stored.number)
              return fresh.length > 0 ? apply(tx, fresh) : []
            }),
          )
        if (relevant.some(isUnknown))
          return applyWith((tx, fresh) => applyEach(tx, effects, fresh, upto, poison))
        try {
          const at = await applyWith((tx, fresh) => effects.apply(tx, fresh, upto))
          failure = undefined
          if (relevant.length > 0) succeededAt = performance.now()
          return at
        } catch (err) {
          if (isTransient(err)) throw err
          failure = { at: startAt, times: failure?.at === startAt ? failure.times + 1 : 1 }
          if (failure.times < CONSUMER_TRIES) throw err
        }
        const fresh = relevant.filter(({ number }) => number > startAt)
        const replaced = await replaceFailing(fresh, upto)
        return applyWith((tx) => applyEach(tx, effects, replaced, upto, poison))
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

/** The position after a transaction, and its changes. */
interface Step {
  readonly result: Position | undefined
  readonly changes: readonly RowChange[]
}

/** The position of another schema up to which effects are committed. */
export const consumedPosition = (db: Db, schema: string): Promise<Position | undefined> =>
  positionOf(db, schema)

async function positionOf(db: Db, schema: string, mode?: 'lock'): Promise<Position | undefined> {
  const { rows } = await db.query<{ timeline: string | null; number: number }>(
    sql`select timeline, number from followed where schema = ${schema} ${mode ? sql`for update` : sql``}`,
    mode ? 'hold-followed' : 'followed',
  )
  const [row] = rows
  return row?.timeline ? { timeline: row.timeline, number: row.number } : undefined
}
