import { metrics } from '@overlay/process'
import { openAlarm, openOutage } from '@overlay/process/async'
import type { Change, Changes, Context, Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import sql from 'sql-template-tag'
import { NOTIFIED_POLL_MS, NOTIFY_MS, POLL_MS, POSITION_MS, SILENCE_MS } from '../limits.js'
import type { Database, Db, Tx } from '../postgres/database.js'
import { isAway } from '../postgres/database-failure.js'
import { type Appended, appendChanges, type RowChange } from './append.js'
import type { Bus } from './bus.js'
import { leading } from './message-size.js'
import { isSamePosition } from './positions.js'
import { openRecentChanges } from './recent-changes.js'

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
  /** The same, then new ones as they are committed, and a heartbeat after each poll of the database. */
  watch(after: Position, signal: AbortSignal, options?: Partial<WatchOptions>): AsyncIterable<Changes>
}

export interface PullOptions {
  /** Changes of these kinds only; empty: of all. */
  readonly kinds: readonly string[]
}

export interface WatchOptions extends PullOptions {
  /** How long changes are gathered after a message with some. */
  readonly gatherMs: number
}

/** Opens the change log of the service's own schema. Replicas learn of each other's commits by notifications and polls. */
export async function openChangeLog(
  db: Database,
  bus: Pick<Bus, 'publish' | 'subscribe' | 'onChange'>,
  log: Logger,
): Promise<ChangeLog> {
  const subject = `overlay.${db.schema}.head`
  const moved = openAlarm()

  await ensureTimeline(db)
  const moveListeners = new Set<() => void>()
  const recent = await openRecentChanges(db, () => {
    moved.ring()
    for (const listener of moveListeners) listener()
  })
  let polledAt = performance.now()
  let isFailing = false
  const outage = openOutage(
    (err) => log.warn({ err, schema: db.schema }, 'head of the change log not read'),
    {
      lastsMs: 0,
    },
  )

  async function readHead(): Promise<Position> {
    const startedAt = performance.now()
    try {
      if (isFailing) await ensureTimeline(db) // another server may answer now
      const head = await recent.read()
      isFailing = false
      outage.works()
      polledAt = startedAt
      metrics.databaseAnswered.setToCurrentTime({ schema: db.schema })
      return head
    } catch (err) {
      outage.failed(err)
      isFailing = true
      throw err
    }
  }
  const poll = (): void => {
    readHead().then(moved.ring, () => undefined) // logged by `readHead`, and repeated after POLL_MS
  }
  const polling = setInterval(poll, POLL_MS)

  let notified: Position | undefined
  let notifiedPoll: NodeJS.Timeout | undefined
  const notifications = bus.subscribe(subject, (position) => {
    notified = position as Position
    if (notifiedPoll || recent.has(notified)) return
    poll()
    notifiedPoll = setTimeout(() => {
      notifiedPoll = undefined
      if (notified && !recent.has(notified)) poll()
    }, NOTIFIED_POLL_MS)
  })
  const busChanges = bus.onChange(poll) // notifications may have been missed

  /** After a commit: a failure here is not a failure of the write. */
  function publish(appended: Appended): void {
    try {
      announce(appended)
    } catch (err) {
      log.error({ err, schema: db.schema }, 'commit not passed on; the next poll of the database finds it')
    }
  }

  function announce({ position, changes }: Appended): void {
    // commits of one replica may return out of order
    if (!recent.offer(position, changes)) poll()
    if (pending?.timeline !== position.timeline || pending.number < position.number) pending = position
    notifying ??= setTimeout(notify, NOTIFY_MS)
  }

  let pending: Position | undefined // of the next notification
  let notifying: NodeJS.Timeout | undefined
  function notify(): void {
    clearTimeout(notifying)
    notifying = undefined
    if (pending) bus.publish(subject, pending)
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
      if (recent.some(at, isDeletion)) return
      await moved.sleep(signal, left)
    }
  }

  async function messageAfter(
    { timeline, number }: Position,
    { kinds = [] }: Partial<PullOptions>,
  ): Promise<Changes & { readonly upto: Position }> {
    const later = await recent.after({ timeline, number })
    const isOfKinds = ({ kind }: Change): boolean => kinds.length === 0 || kinds.includes(kind)
    const covered = later.slice(0, leading(later, isOfKinds))
    const upto = { timeline, number: covered.at(-1)?.number ?? number }
    return {
      changes: covered.filter(isOfKinds),
      after: { timeline, number },
      upto,
      more: upto.number < recent.end().number,
      ageMs: Math.ceil(performance.now() - polledAt),
    }
  }

  async function* messagesFrom(
    after: Position,
    signal: AbortSignal,
    options: Partial<WatchOptions>,
  ): AsyncGenerator<Changes> {
    let sent = after
    let sentAt = Number.NEGATIVE_INFINITY
    let reported = Number.NEGATIVE_INFINITY // the poll that the last message reported
    let at = after
    // pulls poll, too, and need not lead to heartbeats
    const isHeartbeatDue = (): boolean =>
      performance.now() - polledAt < SILENCE_MS && polledAt - reported >= POLL_MS / 2
    const isPositionDue = (): boolean => at.number > sent.number && performance.now() - sentAt >= POSITION_MS
    while (!signal.aborted) {
      if (isSamePosition(at, recent.end()) && !isHeartbeatDue() && !isPositionDue()) {
        await moved.sleep(signal, at.number > sent.number ? POSITION_MS : undefined) // polls and changes end it, too
        continue
      }
      const message = await messageAfter(at, options)
      const hasMoved = message.upto.number > at.number
      at = message.upto
      if (message.changes.length > 0 || isHeartbeatDue() || isPositionDue()) {
        const latest = polledAt
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

    head: readHead,

    async pull(after, options = {}) {
      await readHead()
      return messageAfter(after, options)
    },

    watch: (after, signal, options = {}) => messagesFrom(after, signal, options),

    async [Symbol.asyncDispose]() {
      notify()
      clearInterval(polling)
      clearTimeout(notifiedPoll)
      notifications[Symbol.dispose]()
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

/**
 * Begins a new timeline if the database is not the one that the numbers belong to: a restored backup, a copy, or the
 * server that took over after a failover. There the same number may stand for another change.
 */
async function ensureTimeline(db: Db): Promise<void> {
  await db.query(sql`
    update stream set timeline = gen_random_uuid(), origin = here.origin, wal = here.wal
      from current_origin() as here
     where (stream.origin, stream.wal) is distinct from (here.origin, here.wal)`)
}
