import { metrics } from '@overlay/process'
import { openAlarm, openOutage } from '@overlay/process/async'
import type { Change, Changes, Context, Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import type { Database, Tx } from '../postgres/database.js'
import { isAway } from '../postgres/database-failure.js'
import { type Appended, appendChanges, type RowChange } from './append.js'
import type { Bus } from './bus.js'
import { leading, sendable } from './message.js'
import { isSamePosition } from './positions.js'
import { openTail } from './tail.js'
import { ensureTimeline } from './timeline.js'

export type { Actor, Appended, RowChange } from './append.js'

/** The changes of the rows of one schema, in order. */
export interface ChangeLog extends AsyncDisposable {
  readonly db: Database
  readonly log: Logger
  /**
   * All writes go through here: rows, audit rows and change rows commit together or not at all. The changes that
   * `work` returns are appended last. No position: the kinds that were changed are not followed.
   */
  write<T>(
    context: Context,
    work: (tx: Tx) => Promise<{ readonly result: T; readonly changes: readonly RowChange[] }>,
  ): Promise<{ readonly result: T; readonly position: Position | undefined }>
  /** To be called by hot statements that append by themselves, after their commit. */
  appended(position: Position, changes: readonly Change[]): void
  /** Runs when the end has moved: after commits of this replica, and when it learns of those of others. */
  onMove(listener: () => void): Disposable
  /** The end of the change log, read from the database after the call. One read serves all callers. */
  head(): Promise<Position>
  /** Changes after the position, as many as fit a message, read like `head`. OUT_OF_RANGE: holders must reload. */
  pull(after: Position, options?: Partial<PullOptions>): Promise<Changes>
  /** The same, then new ones as they are committed, and signs of life that follow looks at the database. */
  watch(after: Position, signal: AbortSignal, options?: Partial<WatchOptions>): AsyncIterable<Changes>
}

export interface PullOptions {
  /** Changes of these kinds only; empty: of all. */
  readonly kinds: readonly string[]
}

export interface WatchOptions extends PullOptions {
  /** How long changes are gathered after a message with some. */
  readonly gatherMs: number
  /** Between two messages without changes: a second or more. */
  readonly signMs: number
}

/**
 * Between two looks at the database. Hints are faster, but a bus may hang unnoticed. Each look leads to a message;
 * followers are fresh for 2 s from the look on.
 */
const LOOK_MS = 1000
/** While no follower wants signs so often, and there is a bus: what hints miss takes effect within 2 s. */
const REST_LOOK_MS = 1600
const HINT_MS = 10 // commits within this time share a hint
/** Between messages that only move the position, past changes of other kinds. Followers that need it sooner pull. */
const POSITION_MS = 100
const HINTED_LOOK_MS = 50 // between two looks that hints cause
const MAX_KEYS = 100

/** Opens the change log of the service's own schema. Replicas learn of each other's commits by hints and by looks. */
export async function openChangeLog(
  db: Database,
  bus: Pick<Bus, 'publish' | 'subscribe' | 'connected' | 'onChange'>,
  log: Logger,
): Promise<ChangeLog> {
  const subject = `overlay.${db.schema}.head`
  const moved = openAlarm()

  await ensureTimeline(db)
  const moveListeners = new Set<() => void>()
  const tail = await openTail(db, () => {
    moved.ring()
    for (const listener of moveListeners) listener()
  })
  let lookedAt = performance.now()
  let isFailing = false
  const outage = openOutage(
    (err) => log.warn({ err, schema: db.schema }, 'head of the change log not read'),
    {
      lastsMs: 0,
    },
  )

  async function look(): Promise<Position> {
    const startedAt = performance.now()
    try {
      if (isFailing) await ensureTimeline(db) // another server may answer now
      const head = await tail.sync()
      isFailing = false
      outage.works()
      lookedAt = startedAt
      metrics.databaseAnswered.setToCurrentTime({ schema: db.schema })
      return head
    } catch (err) {
      outage.failed(err)
      isFailing = true
      throw err
    }
  }
  const poll = (): void => {
    look().then(moved.ring, () => undefined) // logged by `look`, which is repeated within two seconds
  }
  let closeWatchers = 0
  let isOpen = true
  let ticking: NodeJS.Timeout
  const schedule = (): void => {
    ticking = setTimeout(tick, closeWatchers === 0 && bus.connected() ? REST_LOOK_MS : LOOK_MS)
  }
  function tick(): void {
    schedule()
    poll()
  }
  schedule()
  function watchClosely(): void {
    closeWatchers += 1
    if (closeWatchers > 1 || !isOpen) return
    clearTimeout(ticking) // its first message is a sign: the last look may be too old for one
    tick()
  }

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

  /** After a commit: a failure here is not a failure of the write. */
  function publish(appended: Appended): void {
    try {
      announce(appended)
    } catch (err) {
      log.error({ err, schema: db.schema }, 'commit not passed on; the next look at the database finds it')
    }
  }

  function announce({ position, changes }: Appended): void {
    // commits of one replica may return out of order: the missing one is on its way
    if (!tail.offer(position, changes)) setImmediate(() => tail.has(position) || poll())
    if (pending?.upto.timeline !== position.timeline || pending.upto.number < position.number)
      pending = { upto: position, changes: pending?.changes ?? [] }
    for (const change of changes) {
      if (pending.changes.length === MAX_KEYS) break
      pending.changes.push(change)
    }
    hinting ??= setTimeout(publishHint, HINT_MS)
  }

  let pending: { readonly upto: Position; readonly changes: Change[] } | undefined // of the next hint
  let hinting: NodeJS.Timeout | undefined
  function publishHint(): void {
    clearTimeout(hinting)
    hinting = undefined
    if (pending) bus.publish(subject, { ...pending.upto, keys: keysOf(pending.changes) })
    pending = undefined
  }

  /** Waits for more changes. A deletion ends the wait: it may take access away. */
  async function gather(
    at: Position,
    { gatherMs = 0, kinds = [] }: Partial<WatchOptions>,
    signal: AbortSignal,
  ): Promise<void> {
    const isDeletion = ({ kind, json }: Change): boolean =>
      json.length === 0 && (kinds.length === 0 || kinds.includes(kind))
    const until = performance.now() + gatherMs
    for (let left = gatherMs; left > 0 && !signal.aborted; left = until - performance.now()) {
      if (tail.some(at, isDeletion)) return
      await moved.sleep(signal, left)
    }
  }

  async function messageAfter(
    { timeline, number }: Position,
    { kinds = [] }: Partial<PullOptions>,
  ): Promise<Changes & { readonly upto: Position }> {
    const later = await tail.after({ timeline, number })
    const isOfKinds = ({ kind }: Change): boolean => kinds.length === 0 || kinds.includes(kind)
    const covered = later.slice(0, leading(later, isOfKinds))
    const upto = { timeline, number: covered.at(-1)?.number ?? number }
    return {
      ...sendable(covered.filter(isOfKinds)),
      after: { timeline, number },
      upto,
      more: upto.number < tail.end().number,
      ageMs: Math.ceil(performance.now() - lookedAt),
    }
  }

  async function* messagesFrom(
    after: Position,
    signal: AbortSignal,
    options: Partial<WatchOptions>,
  ): AsyncGenerator<Changes> {
    const { signMs = LOOK_MS } = options
    let sent = after
    let sentAt = Number.NEGATIVE_INFINITY
    let reported = Number.NEGATIVE_INFINITY // the look of the last message
    let at = after
    const isSignDue = (): boolean =>
      performance.now() - lookedAt <= LOOK_MS && lookedAt - reported >= signMs - LOOK_MS / 2
    const isPositionDue = (): boolean => at.number > sent.number && performance.now() - sentAt >= POSITION_MS
    while (!signal.aborted) {
      if (isSamePosition(at, tail.end()) && !isSignDue() && !isPositionDue()) {
        await moved.sleep(signal, at.number > sent.number ? POSITION_MS : undefined) // looks and changes end it, too
        continue
      }
      const message = await messageAfter(at, options)
      const hasMoved = message.upto.number > at.number
      at = message.upto
      if (message.changes.length > 0 || isSignDue() || isPositionDue()) {
        const latest = lookedAt
        yield { ...message, after: sent } // changes of other kinds were passed over
        sent = at
        sentAt = performance.now()
        reported = latest
      }
      if (hasMoved) await gather(at, options, signal)
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
        if (isAway(err)) poll() // the commit may have succeeded, and only its answer was lost
        throw err
      }
    },

    appended: (position, changes) => publish({ position, changes }),

    onMove(listener) {
      moveListeners.add(listener)
      return { [Symbol.dispose]: () => void moveListeners.delete(listener) }
    },

    head: look,

    async pull(after, options = {}) {
      await look()
      return messageAfter(after, options)
    },

    async *watch(after, signal, options = {}) {
      const isClose = (options.signMs ?? LOOK_MS) <= LOOK_MS
      if (isClose) watchClosely()
      try {
        yield* messagesFrom(after, signal, options)
      } finally {
        if (isClose) closeWatchers -= 1
      }
    },

    async [Symbol.asyncDispose]() {
      publishHint()
      isOpen = false
      clearTimeout(ticking)
      clearTimeout(hintedLook)
      hints[Symbol.dispose]()
      busChanges[Symbol.dispose]()
      outage[Symbol.dispose]()
      moved.ring()
    },
  }
}

/** Writes without a result. Returns the position of the changes. */
export async function writeChanges(
  changeLog: Pick<ChangeLog, 'write'>,
  context: Context,
  work: (tx: Tx) => Promise<readonly RowChange[]>,
): Promise<Position | undefined> {
  const write = async (tx: Tx) => ({ result: undefined, changes: await work(tx) })
  return (await changeLog.write(context, write)).position
}

/** The changed rows, for subscribers of the bus. A hint, so limited to a small message. */
const keysOf = (changes: readonly Change[]): object[] =>
  changes.slice(0, MAX_KEYS).map(({ kind, id, json }) => ({ kind, id, deleted: json.length === 0 }))
