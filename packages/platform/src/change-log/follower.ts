import { setTimeout as delay } from 'node:timers/promises'
import { type Change, type Changes, Fault, type Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import { openLimit } from '../async/limit.js'
import { metrics } from '../process/metrics.js'
import { poisonOf } from './poison.js'
import type { Source } from './source.js'
import { openWaiting } from './waiting.js'

/** Where followed changes go. Each function answers where it stands afterwards; they are called one at a time. */
export interface Sink {
  readonly kinds: readonly string[]
  /** Changes may wait for others for so long, unless somebody waits for them. */
  readonly gatherMs: number
  /** While it takes a load, old and new rows are mixed: it stands nowhere. */
  readonly mixesLoads: boolean
  /** From an earlier run; undefined: it has nothing and wants all rows. */
  start(): Promise<Position | undefined>
  /** All rows in place of what it had at `known`. */
  replace(load: Load, known: Position | undefined): Promise<Position | undefined>
  /** What comes after its position, without gaps. */
  take(changes: readonly Change[], upto: Position): Promise<Position | undefined>
}

/** All rows, as they were at `upto` or later. */
export interface Load {
  readonly upto: Position
  /** To be read once; throws when the owner does not tell all of them. */
  readonly pages: AsyncIterable<readonly Change[]>
}

export interface Follower extends AsyncDisposable {
  /** How far the sink is. */
  position(): Position | undefined
  /** The sink had all that its owner had within the last `ms`. */
  heardWithin(ms: number): boolean
  /** Resolves after the first load. */
  readonly loaded: Promise<void>
  /** Resolves when the sink is at the position; asks the owner at once when it is not. TIMEOUT when aborted. */
  waitFor(position: Position, signal: AbortSignal): Promise<void>
  /** Resolves when the sink has all that its owner had at the time of the call. */
  catchUp(signal: AbortSignal): Promise<void>
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2000
const SILENCE_MS = 3000 // an owner says something each second
const LOAD_SILENCE_MS = 30_000
const PULL_MS = 2000

/** One loop for all followers: load, watch, and ask at once for whom somebody waits. */
export function startFollower(source: Source, sink: Sink, log: Logger): Follower {
  const { schema } = source
  const stop = new AbortController()
  const kinds = new Set(sink.kinds)
  const poison = poisonOf(source, log, stop.signal)
  let applied: Position | undefined
  let outdated = false // on another timeline, or too far behind: load anew
  let heardAt = Number.NEGATIVE_INFINITY
  let rewatch = new AbortController()
  const waiting = openWaiting(() => applied)
  const { promise: loaded, resolve: nowLoaded } = deferred()

  let last: Promise<unknown> = Promise.resolve()
  /** One after the other. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    const run = last.then(work)
    last = run.catch(() => undefined)
    return run
  }

  /** After a failure it is unknown where the sink stands. */
  async function move(use: () => Promise<Position | undefined>): Promise<void> {
    try {
      applied = await use()
    } catch (err) {
      applied = undefined
      rewatch.abort(err)
      throw err
    }
  }

  function hear(at: number): void {
    heardAt = at
    metrics.followHeard.setToCurrentTime({ schema })
    if (applied) metrics.followPosition.set({ schema }, applied.number)
  }

  /** False: the sink has gone on to another timeline by itself. */
  async function accept(message: Changes, askedAt: number): Promise<boolean> {
    const { upto, after, changes, more } = message
    if (!upto) throw new Error("message without 'upto'")
    await inTurn(async () => {
      if (applied?.timeline !== upto.timeline || applied.number >= upto.number) return
      const { number } = applied
      const fresh = changes.filter((change) => change.number > number)
      const isWhole = after ? after.number <= number : fresh.length === upto.number - number
      if (!isWhole) throw new Error('changes are missing')
      const wanted = await wholeRows(
        fresh.filter(({ kind }) => kinds.has(kind)),
        message,
      )
      await move(() => sink.take(wanted, upto))
      for (const { atMs } of wanted)
        metrics.followLag.observe({ schema }, Math.max(0, Date.now() - atMs) / 1000)
    })
    if (applied?.timeline !== upto.timeline) return false
    if (!more) hear(Math.max(heardAt, askedAt))
    waiting.settle()
    return true
  }

  /** What fitted no message is asked for alone. */
  async function wholeRows(
    wanted: readonly Change[],
    { changes, oversized }: Changes,
  ): Promise<readonly Change[]> {
    if (oversized.length === 0) return wanted
    const rows = new Set(oversized.map((at) => changes[at]))
    const whole: Change[] = []
    for (const change of wanted)
      whole.push(rows.has(change) ? await poison.alone(change, new Error('the row fits no message')) : change)
    return whole
  }

  async function load(): Promise<void> {
    const [turn, askedAt] = [waiting.begin(), performance.now()]
    let from: Position | undefined
    await inTurn(async () => {
      const known = applied ?? (await sink.start())
      const messages = audible(LOAD_SILENCE_MS, (signal) => source.load(sink.kinds, signal))
      for await (const load of loadOf(messages, wholeRows)) {
        from = load.upto
        if (sink.mixesLoads) applied = undefined
        await move(() => sink.replace(load, known))
      }
    })
    outdated = false
    if (same(applied, from)) {
      hear(askedAt)
      waiting.end(turn)
    }
    nowLoaded()
  }

  async function watch(from: Position): Promise<void> {
    rewatch = new AbortController()
    const messages = (signal: AbortSignal) => source.watch(from, signal, sink.gatherMs, sink.kinds)
    for await (const message of audible(SILENCE_MS, messages, rewatch.signal)) {
      if (!(await accept(message, performance.now() - message.ageMs))) return
      pause = FIRST_PAUSE_MS
    }
    rewatch.signal.throwIfAborted()
    throw new Fault('UNAVAILABLE', undefined, new Error('the owner ended the stream'))
  }

  let pause = FIRST_PAUSE_MS
  async function run(): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        if (!outdated) applied ??= await sink.start()
        if (!applied || outdated) await load()
        pull()
        if (applied) await watch(applied)
      } catch (err) {
        if (stop.signal.aborted) return
        if (isOutOfRange(err)) discard()
        if (pause === FIRST_PAUSE_MS) log.warn({ err, schema }, 'changes not followed')
        await delay(pause, undefined, { signal: stop.signal }).catch(() => undefined)
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
      }
    }
  }

  /** What the sink has is of no use to anybody who asks from now on. */
  function discard(): void {
    outdated = true
    heardAt = Number.NEGATIVE_INFINITY
    rewatch.abort(new Fault('OUT_OF_RANGE'))
  }

  let pulling: Promise<void> | undefined
  /** While somebody waits; one look serves all who came before it. */
  async function pullWhileWanted(): Promise<void> {
    let pause = FIRST_PAUSE_MS
    try {
      while (waiting.any() && applied && !outdated && !stop.signal.aborted) {
        if (await pullOnce()) continue
        await delay(pause, undefined, { signal: stop.signal }).catch(() => undefined)
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
      }
    } finally {
      pulling = undefined // in the same step as the last look at who waits: nobody falls between
    }
  }
  function pull(): void {
    // only with something to do: it would be over before it is noted that it runs
    if (waiting.any() && applied && !outdated && !stop.signal.aborted) pulling ??= pullWhileWanted()
  }

  /** False: it helped not everybody who waited for it. */
  async function pullOnce(): Promise<boolean> {
    const [turn, askedAt] = [waiting.begin(), performance.now()]
    using limit = openLimit(PULL_MS, stop.signal)
    try {
      while (applied) {
        const message: Changes = await source.pull(applied, limit.signal, sink.kinds)
        if (!(await accept(message, askedAt))) return false
        if (!message.more) break
      }
      waiting.end(turn)
      return !waiting.anySince(turn)
    } catch (err) {
      if (isOutOfRange(err)) discard()
      else if (!stop.signal.aborted) log.warn({ err, schema }, 'owner of the changes does not answer')
      return false
    }
  }

  /** Throws when a stream says nothing for so long. */
  async function* audible<T>(
    ms: number,
    open: (signal: AbortSignal) => AsyncIterable<T>,
    also: AbortSignal = stop.signal,
  ): AsyncIterable<T> {
    using limit = openLimit(ms, stop.signal, also)
    for await (const message of open(limit.signal)) {
      yield message
      limit.refresh()
    }
    if (limit.isOver) throw new Fault('UNAVAILABLE', undefined, new Error('the owner is silent'))
  }

  const running = run()
  return {
    position: () => applied,
    heardWithin: (ms) => applied !== undefined && performance.now() - heardAt <= ms,
    loaded,
    waitFor(position, signal) {
      const reached = waiting.wait(position, signal)
      pull()
      return reached
    },
    catchUp(signal) {
      const reached = waiting.wait(undefined, signal)
      pull()
      return reached
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await Promise.all([running, pulling])
    },
  }
}

/** One load, or none where it throws: the stream is closed however it is used. */
async function* loadOf(
  messages: AsyncIterable<Changes>,
  wholeRows: (rows: readonly Change[], message: Changes) => Promise<readonly Change[]>,
): AsyncIterable<Load> {
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
      if (message.changes.length > 0) yield await wholeRows(message.changes, message)
      if (!message.more) return
      message = ((await reading.next()) as IteratorResult<Changes, undefined>).value
      if (!message) throw ended()
    }
  }
}

export const same = (a: Position | undefined, b: Position | undefined): boolean =>
  a?.timeline === b?.timeline && a?.number === b?.number

const isOutOfRange = (err: unknown): boolean => err instanceof Fault && err.code === 'OUT_OF_RANGE'

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
