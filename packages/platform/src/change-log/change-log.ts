import { setTimeout as delay } from 'node:timers/promises'
import type { Change, Changes, Context, Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import type { Database, Tx } from '../postgres/database.js'
import { isAway } from '../postgres/database-failure.js'
import { type Appended, appendChanges, type RowChange } from './append.js'
import type { Bus } from './bus.js'
import { leading, sendable } from './message.js'
import { openTail } from './tail.js'
import { settleTimeline } from './timeline.js'

export type { Actor, Appended, RowChange } from './append.js'

/** What has happened to the rows of one schema, in order. */
export interface ChangeLog extends AsyncDisposable {
  readonly db: Database
  readonly log: Logger
  /**
   * Every write goes through here: rows, audit rows and change rows commit together or not at all. The changes that
   * `work` returns are appended last. No position: nobody follows what was changed.
   */
  write<T>(
    context: Context,
    work: (tx: Tx) => Promise<{ readonly result: T; readonly changes: readonly RowChange[] }>,
  ): Promise<{ readonly result: T; readonly position: Position | undefined }>
  /** Told by hot statements that append by themselves, after their commit. */
  appended(position: Position, changes: readonly Change[]): void
  /** Where the change log ends: read from the database after the call, one read for all callers. */
  head(): Promise<Position>
  /** Changes after the position, as many as fit a message, read like `head`. OUT_OF_RANGE: load anew. */
  pull(after: Position, wanted?: Partial<PullOptions>): Promise<Changes>
  /** The same, then new ones as they are committed; and a message after each look at the database. */
  watch(after: Position, signal: AbortSignal, wanted?: Partial<PullOptions>): AsyncIterable<Changes>
}

export interface PullOptions {
  /** Changes of these alone; none: of all. */
  readonly kinds: readonly string[]
  /** Changes are gathered for so long after a message with some. */
  readonly gatherMs: number
}

/**
 * Hints say it sooner; but a bus may hang unnoticed, and a sign of life vouches for a look. Who hears it trusts for 2 s
 * from that look on.
 */
const LOOK_MS = 1000
const HINT_MS = 10 // hints of so long leave as one
const HINTED_LOOK_MS = 50 // looks that hints ask for are so far apart
const MAX_KEYS = 100

/** For the owner of a schema. Every replica has its own, in step by hints and by looking. */
export async function openChangeLog(
  db: Database,
  bus: Pick<Bus, 'publish' | 'subscribe' | 'connected' | 'onChange'>,
  log: Logger,
): Promise<ChangeLog> {
  const subject = `overlay.${db.schema}.head`
  const sleepers = new Set<() => void>()
  const wake = (): void => {
    for (const done of sleepers) done()
  }

  await settleTimeline(db)
  const tail = await openTail(db, wake)
  let heardAt = performance.now()
  let failing = false

  async function look(): Promise<Position> {
    const startedAt = performance.now()
    try {
      if (failing) await settleTimeline(db) // it may be another server that answers now
      const head = await tail.sync()
      failing = false
      heardAt = startedAt
      return head
    } catch (err) {
      if (!failing) log.warn({ err, schema: db.schema }, 'head of the change log not read')
      failing = true
      throw err
    }
  }
  const poll = (): void => {
    look().then(wake, () => undefined) // logged where it began; the next one follows within a second
  }
  const ticking = setInterval(poll, LOOK_MS)

  let hinted: Position | undefined
  let hintedLook: NodeJS.Timeout | undefined
  const hints = bus.subscribe(subject, (hint) => {
    hinted = hint as Position
    if (hintedLook || tail.has(hinted)) return
    poll()
    hintedLook = setTimeout(() => {
      hintedLook = undefined
      if (hinted && !tail.has(hinted)) poll()
    }, HINTED_LOOK_MS)
  })
  const busChanges = bus.onChange(poll) // hints may have been missed

  /** After a commit: whatever fails here must not tell anybody that the write did. */
  function publish(appended: Appended): void {
    try {
      tell(appended)
    } catch (err) {
      log.error({ err, schema: db.schema }, 'commit not passed on; the next look at the database finds it')
    }
  }

  function tell({ position, changes }: Appended): void {
    // commits of one replica may come back in another order than they were made: the missing one is on its way
    if (!tail.offer(position, changes)) setImmediate(() => tail.has(position) || poll())
    if (untold?.upto.timeline !== position.timeline || untold.upto.number < position.number)
      untold = { upto: position, changes: untold?.changes ?? [] }
    for (const change of changes) {
      if (untold.changes.length === MAX_KEYS) break
      untold.changes.push(change)
    }
    hinting ??= setTimeout(hint, HINT_MS)
  }

  let untold: { readonly upto: Position; readonly changes: Change[] } | undefined
  let hinting: NodeJS.Timeout | undefined
  function hint(): void {
    clearTimeout(hinting)
    hinting = undefined
    if (untold) bus.publish(subject, { ...untold.upto, keys: keysOf(untold.changes) })
    untold = undefined
  }

  /** Ends when the head moves, or after the time. */
  const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        sleepers.delete(done)
        signal.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, signal.aborted ? 0 : ms)
      sleepers.add(done)
      signal.addEventListener('abort', done)
    })

  async function messageAfter(
    { timeline, number }: Position,
    { kinds = [] }: Partial<PullOptions>,
  ): Promise<Changes & { readonly upto: Position }> {
    const later = await tail.after({ timeline, number })
    const isWanted = ({ kind }: Change): boolean => kinds.length === 0 || kinds.includes(kind)
    const told = later.slice(0, leading(later, isWanted))
    const upto = { timeline, number: told.at(-1)?.number ?? number }
    return {
      ...sendable(told.filter(isWanted)),
      after: { timeline, number },
      upto,
      more: upto.number < tail.known().number,
      ageMs: Math.ceil(performance.now() - heardAt),
    }
  }

  return {
    db,
    log,

    async write(context, work) {
      try {
        const { result, appended } = await db.transaction(context.deadline, async (tx) => {
          const { result, changes } = await work(tx)
          return { result, appended: await appendChanges(tx, context, changes) }
        })
        if (appended) publish(appended)
        return { result, position: appended?.position }
      } catch (err) {
        if (isAway(err)) poll() // perhaps only the answer to the commit was lost
        throw err
      }
    },

    appended: (position, changes) => publish({ position, changes }),

    head: look,

    async pull(after, wanted = {}) {
      await look()
      return messageAfter(after, wanted)
    },

    async *watch(after, signal, wanted = {}) {
      const { gatherMs = 0 } = wanted
      let at = after
      let vouchedFor = Number.NEGATIVE_INFINITY // the look that the last message speaks of
      while (!signal.aborted) {
        const message = await messageAfter(at, wanted)
        const hasMoved = message.upto.number > at.number
        at = message.upto
        const lookedAt = heardAt
        const isLate = performance.now() - lookedAt > LOOK_MS
        if (hasMoved || (!isLate && lookedAt - vouchedFor >= LOOK_MS / 2)) {
          vouchedFor = lookedAt
          yield message
        }
        if (message.changes.length > 0 && gatherMs > 0)
          await delay(gatherMs, undefined, { signal }).catch(() => undefined)
        if (at.number === tail.known().number) await sleep(LOOK_MS, signal)
      }
    },

    async [Symbol.asyncDispose]() {
      hint()
      clearInterval(ticking)
      clearTimeout(hintedLook)
      hints[Symbol.dispose]()
      busChanges[Symbol.dispose]()
      wake()
    },
  }
}

/** What has changed, for who listens on the bus alone; a hint, so not more than fits a small message. */
const keysOf = (changes: readonly Change[]): object[] =>
  changes.slice(0, MAX_KEYS).map(({ kind, id, json }) => ({ kind, id, deleted: json.length === 0 }))
