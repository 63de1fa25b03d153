import { setImmediate as nextTurn } from 'node:timers/promises'
import { metrics } from '@overlay/process'
import {
  type Connection,
  openBackoff,
  openLimit,
  openOutage,
  openSerial,
  reconnect,
  withWatchdog,
} from '@overlay/process/async'
import { type Change, type Changes, Fault, type Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import { FOLLOW_PAUSE_MS, LOAD_SILENCE_MS, LONGEST_FOLLOW_PAUSE_MS, PULL_MS, SILENCE_MS } from '../limits.js'
import { isAway } from '../postgres/database-failure.js'
import { isSamePosition } from './positions.js'
import type { Source } from './source.js'
import { openStreamHealth } from './stream-health.js'
import { openWaiters } from './waiters.js'

/** Receives followed changes. Each function returns the position that the sink is at; they are called one at a time. */
export interface Sink {
  /** In metrics. */
  readonly name: string
  readonly kinds: readonly string[]
  /** The kinds whose rows a load has. */
  readonly loadedKinds: readonly string[]
  /** How long the owner may gather changes. Callers that wait are served at once. */
  readonly gatherMs: number
  /** True: during a load old and new rows are mixed, so the sink has no position. */
  readonly mixesLoads: boolean
  /** The position of an earlier run; undefined: the sink is empty and needs all rows. */
  start(): Promise<Position | undefined>
  /** All rows in place of those that it had at `before`. */
  replace(load: Load, before: Position | undefined): Promise<Position | undefined>
  /** The changes after its position, without gaps. */
  take(changes: readonly Change[], upto: Position): Promise<Position | undefined>
}

/** All rows, as they were at `upto` or later. */
export interface Load {
  readonly upto: Position
  /** Can be read once. Throws when the owner does not send all of them. */
  readonly pages: AsyncIterable<readonly Change[]>
}

export interface Follower extends AsyncDisposable {
  /** The position of the sink. */
  position(): Position | undefined
  /** The time since the sink had all that its owner had. Infinity: it never had. */
  ageMs(): number
  /** True while the stream of the owner works. */
  isHeard(): boolean
  /** Resolves after the first load. */
  readonly loaded: Promise<void>
  /** Resolves when the sink is at the position; asks the owner at once when it is not. TIMEOUT when aborted. */
  waitFor(position: Position, signal: AbortSignal): Promise<void>
  /** Resolves when the sink has all that its owner had at the time of the call. */
  catchUp(signal: AbortSignal): Promise<void>
}

const PAUSES = { firstMs: FOLLOW_PAUSE_MS, longestMs: LONGEST_FOLLOW_PAUSE_MS }

/** The loop of all followers: loads, watches, and pulls at once while callers wait. */
export function startFollower(source: Source, sink: Sink, log: Logger): Follower {
  const { schema } = source
  const stop = new AbortController()
  const kinds = new Set(sink.kinds)
  let applied: Position | undefined
  let mustReload = false // on another timeline, or too far behind
  const health = openStreamHealth(schema, () => applied)
  let watching = new AbortController()
  const waiters = openWaiters(() => applied)
  const firstLoad = Promise.withResolvers<void>()
  const serially = openSerial()

  /** After a failure the position of the sink is unknown. */
  async function move(step: () => Promise<Position | undefined>): Promise<void> {
    try {
      applied = await step()
    } catch (err) {
      applied = undefined
      watching.abort(err)
      throw err
    }
  }

  /** False: the sink is on another timeline. */
  async function accept(message: Changes, requestedAt: number): Promise<boolean> {
    const { upto, after, changes, more } = message
    if (!upto) throw new Error("message without 'upto'")
    await serially(async () => {
      if (applied?.timeline !== upto.timeline || applied.number >= upto.number) return
      const { number } = applied
      const later = changes.filter((change) => change.number > number)
      const isWhole = after ? after.number <= number : later.length === upto.number - number
      if (!isWhole) throw new Error('changes are missing')
      const rows = later.filter(({ kind }) => kinds.has(kind))
      await move(() => sink.take(rows, upto))
      for (const { atMs } of rows)
        metrics.followLag.observe({ schema }, Math.max(0, Date.now() - atMs) / 1000)
    })
    if (applied?.timeline !== upto.timeline) return false
    if (!more) health.refresh(requestedAt)
    waiters.check()
    return true
  }

  async function load(): Promise<void> {
    const [pull, requestedAt] = [waiters.beginPull(), performance.now()]
    let from: Position | undefined
    await serially(async () => {
      const before = applied ?? (await sink.start())
      const open = (signal: AbortSignal) => source.load(sink.loadedKinds, signal)
      for await (const load of loadOf(withWatchdog(LOAD_SILENCE_MS, open, stop.signal))) {
        from = load.upto
        if (sink.mixesLoads) applied = undefined
        await move(() => sink.replace(load, before))
      }
    }).catch((err: unknown) => {
      const cause = isAway(err) ? 'unavailable' : 'error'
      if (!stop.signal.aborted) metrics.followLoadFailed.inc({ schema, follower: sink.name, cause })
      throw err
    })
    mustReload = false
    if (isSamePosition(applied, from)) {
      health.refresh(requestedAt)
      waiters.endPull(pull)
    }
    firstLoad.resolve()
  }

  async function watch(from: Position, { works }: Connection): Promise<void> {
    watching = new AbortController()
    const { gatherMs, kinds } = sink
    const open = (signal: AbortSignal) => source.watch(from, signal, { gatherMs, kinds })
    for await (const message of withWatchdog(SILENCE_MS, open, stop.signal, watching.signal)) {
      if (!(await accept(message, performance.now() - message.ageMs))) return
      health.hear()
      works()
    }
    watching.signal.throwIfAborted()
    throw new Fault('UNAVAILABLE', undefined, new Error('the owner ended the stream'))
  }

  async function connect(connection: Connection): Promise<void> {
    if (!mustReload) applied ??= await sink.start()
    if (!applied || mustReload) await load()
    startPulling()
    if (applied) await watch(applied, connection)
  }

  /** What the sink has no longer serves callers. */
  function discard(): void {
    mustReload = true
    health.expire()
    watching.abort(new Fault('OUT_OF_RANGE'))
  }

  const canPull = (): boolean => waiters.any() && applied !== undefined && !mustReload && !stop.signal.aborted

  const pulls = openOutage((err) => log.warn({ err, schema }, 'owner of the changes does not answer'))
  let pulling: Promise<void> | undefined
  /** While callers wait. One pull serves all callers that came before it, and callers of one turn share a pull. */
  async function pullWhileAwaited(): Promise<void> {
    const backoff = openBackoff(PAUSES)
    try {
      while (canPull()) {
        await nextTurn()
        if (canPull() && !(await pullOnce())) await backoff.pause(stop.signal)
      }
    } finally {
      pulling = undefined // in the same step as the last `canPull`: no caller is missed
    }
  }
  function startPulling(): void {
    // without this condition it would end before `pulling` is set
    if (canPull()) pulling ??= pullWhileAwaited()
  }

  /** False: some callers that it should have served still wait. */
  async function pullOnce(): Promise<boolean> {
    const [pull, requestedAt] = [waiters.beginPull(), performance.now()]
    using limit = openLimit(PULL_MS, stop.signal)
    try {
      while (applied) {
        const message: Changes = await source.pull(applied, limit.signal, sink.kinds)
        if (!(await accept(message, requestedAt))) return false
        if (!message.more) break
      }
      waiters.endPull(pull)
      pulls.works()
      return !waiters.anySince(pull)
    } catch (err) {
      if (isOutOfRange(err)) discard()
      else if (!stop.signal.aborted) pulls.failed(err)
      return false
    }
  }

  const running = reconnect({
    ...PAUSES,
    signal: stop.signal,
    connect,
    onFailure(err) {
      if (isOutOfRange(err)) discard()
    },
    onOutage: (err) => log.warn({ err, schema }, 'changes not followed'),
  })
  const pulled = (wait: Promise<void>): Promise<void> => {
    startPulling()
    return wait
  }
  return {
    position: () => applied,
    ageMs: () => (applied === undefined ? Infinity : health.ageMs()),
    isHeard: health.isHeard,
    loaded: firstLoad.promise,
    waitFor: (position, signal) => pulled(waiters.wait(position, signal)),
    catchUp: (signal) => pulled(waiters.wait(undefined, signal)),
    async [Symbol.asyncDispose]() {
      health[Symbol.dispose]()
      stop.abort()
      await Promise.all([running, pulling])
      pulls[Symbol.dispose]()
    },
  }
}

/** One load, or none when it throws. The stream is closed in any case. */
async function* loadOf(messages: AsyncIterable<Changes>): AsyncIterable<Load> {
  const reading = messages[Symbol.asyncIterator]()
  const ended = (): Error => new Error('load ended early')
  try {
    const { value: first } = (await reading.next()) as IteratorResult<Changes, undefined>
    if (!first?.upto) throw ended()
    yield { upto: first.upto, pages: pagesOf(first) }
  } finally {
    await reading.return?.()
  }

  async function* pagesOf(first: Changes): AsyncIterable<readonly Change[]> {
    for (let message: Changes | undefined = first; ; ) {
      if (message.changes.length > 0) yield message.changes
      if (!message.more) return
      message = ((await reading.next()) as IteratorResult<Changes, undefined>).value
      if (!message) throw ended()
    }
  }
}

const isOutOfRange = (err: unknown): boolean => err instanceof Fault && err.code === 'OUT_OF_RANGE'
