import { setTimeout as delay } from 'node:timers/promises'
import type { Change, Changes, Context, Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import { type Appended, append, type RowChange } from './append.js'
import type { Bus } from './bus.js'
import type { Database, Tx } from './database.js'
import { isAway } from './database-failure.js'
import { leading } from './message.js'
import { startReaping } from './reaper.js'
import { startAddingUp } from './row-counts.js'
import { openTail } from './tail.js'
import { settleTimeline } from './timeline.js'

export type { Actor, RowChange } from './append.js'

/** What has happened to the rows of one schema, in order. */
export interface History extends AsyncDisposable {
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
  /** Where the history ends: read from the database after the call, one read for all callers. */
  head(): Promise<Position>
  /** Changes after the position, as many as fit a message, read like `head`. OUT_OF_RANGE: load anew. */
  pull(after: Position): Promise<Changes>
  /**
   * The same, then new ones as they are committed, or gathered for so long after a message; a message at least each
   * second while the database answers.
   */
  watch(after: Position, signal: AbortSignal, gatherMs?: number): AsyncIterable<Changes>
}

const SIGN_OF_LIFE_MS = 1000
const POLL_MS = 5000 // hints say it sooner
const POLL_WITHOUT_BUS_MS = 1000
const HINT_MS = 10 // hints of so long leave as one
const MAX_KEYS = 100

/** For the owner of a schema. Every replica has its own, in step by hints and by looking. */
export async function openHistory(
  db: Database,
  bus: Pick<Bus, 'publish' | 'subscribe' | 'connected' | 'onChange'>,
  log: Logger,
): Promise<History> {
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
      if (!failing) log.warn({ err, schema: db.schema }, 'head of the history not read')
      failing = true
      throw err
    }
  }
  const poll = (): void => {
    look().catch(() => undefined) // logged where it began; the next one follows within a second
  }
  const isAlive = (): boolean =>
    !failing &&
    performance.now() - heardAt < SIGN_OF_LIFE_MS + (bus.connected() ? POLL_MS : POLL_WITHOUT_BUS_MS)

  const ticking = setInterval(() => {
    if (failing || !bus.connected() || performance.now() - heardAt > POLL_MS - POLL_WITHOUT_BUS_MS) poll()
  }, POLL_WITHOUT_BUS_MS)
  const hints = bus.subscribe(subject, (hint) => {
    if (!tail.has(hint as Position)) poll()
  })
  const busChanges = bus.onChange(poll) // hints may have been missed
  const reaping = startReaping(db, log)
  const addingUp = startAddingUp(db, log)

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

  async function messageAfter({
    timeline,
    number,
  }: Position): Promise<Changes & { readonly upto: Position }> {
    const changes = leading(await tail.after({ timeline, number }))
    const upto = { timeline, number: changes.at(-1)?.number ?? number }
    return { upto, changes, more: upto.number < tail.known().number }
  }

  return {
    db,
    log,

    async write(context, work) {
      try {
        const { result, appended } = await db.transaction(context.deadline, async (tx) => {
          const { result, changes } = await work(tx)
          return { result, appended: await append(tx, context, changes) }
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

    async pull(after) {
      await look()
      return messageAfter(after)
    },

    async *watch(after, signal, gatherMs = 0) {
      let at = after
      while (!signal.aborted) {
        const message = await messageAfter(at)
        at = message.upto
        if (message.changes.length > 0 || isAlive()) yield message
        if (message.changes.length > 0 && gatherMs > 0)
          await delay(gatherMs, undefined, { signal }).catch(() => undefined)
        if (at.number === tail.known().number) await sleep(SIGN_OF_LIFE_MS, signal)
      }
    },

    async [Symbol.asyncDispose]() {
      hint()
      clearInterval(ticking)
      hints[Symbol.dispose]()
      busChanges[Symbol.dispose]()
      await reaping[Symbol.asyncDispose]()
      await addingUp[Symbol.asyncDispose]()
      wake()
    },
  }
}

/** What has changed, for who listens on the bus alone; a hint, so not more than fits a small message. */
const keysOf = (changes: readonly Change[]): object[] =>
  changes.slice(0, MAX_KEYS).map(({ kind, id, json }) => ({ kind, id, deleted: json.length === 0 }))
