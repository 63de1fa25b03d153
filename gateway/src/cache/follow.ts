import { setTimeout as delay } from 'node:timers/promises'
import { metrics } from '@overlay/platform/process'
import {
  type Changes as ChangesMessage,
  Fault,
  ownContext,
  type Position,
  type Positions,
} from '@overlay/rpc'
import type { Changes } from '../clients/services.js'
import type { WritePositions } from './write-positions.js'

/** What a cache knows about its owner. */
export interface Followed extends AsyncDisposable {
  /** Heard of it a moment ago: what has not been dropped is valid. */
  trusted(): boolean
  /** How far the drops have come, by schema. */
  positions(): Positions
}

export interface Log {
  warn(facts: object, message: string): void
}

const SILENCE_MS = 2000
/** A stream this silent is dead, though nobody has said so. */
const DEAD_MS = 5000
const PAUSE_MS = 250

/**
 * Reads a stream for ever. `open` begins it anew after a failure. Each message, also an empty one, is a sign of life,
 * except while `hear` answers null: then there is more to come before everything is known. What a message says may be
 * older than the message: trust counts from then.
 */
export function follow<M>(
  name: string,
  log: Log,
  open: (signal: AbortSignal) => AsyncIterable<M>,
  hear: (message: M) => Positions | null,
  ageMsOf: (message: M) => number = () => 0,
): Followed {
  const stop = new AbortController()
  let heardAt = Number.NEGATIVE_INFINITY
  let positions: Positions = {}

  async function run(): Promise<void> {
    let told = false
    while (!stop.signal.aborted) {
      const silent = new AbortController()
      const watchdog = setTimeout(() => silent.abort(new Error('nothing was heard')), DEAD_MS)
      try {
        for await (const message of open(AbortSignal.any([stop.signal, silent.signal]))) {
          watchdog.refresh()
          const heard = hear(message)
          if (heard === null) continue
          positions = heard
          heardAt = Math.max(heardAt, performance.now() - ageMsOf(message))
          metrics.followHeard.setToCurrentTime({ schema: name })
          told = false
        }
      } catch (err) {
        if (!stop.signal.aborted && !told) log.warn({ err, follows: name }, 'stream lost, trying again')
        told = true // once for each outage
      } finally {
        clearTimeout(watchdog)
      }
      await delay(PAUSE_MS, undefined, { signal: stop.signal }).catch(() => undefined)
    }
  }
  const running = run()
  return {
    trusted: () => performance.now() - heardAt < SILENCE_MS, // a clock that nobody sets,
    positions: () => positions,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}

/** Follows what a service says about its rows. `restart`: nothing that is remembered of it may be used any more. */
export function followChanges(
  schema: string,
  owner: Changes,
  log: Log,
  writePositions: WritePositions,
  seen: { apply(changes: ChangesMessage['changes']): void; restart(): void },
): Followed {
  let at: Position | undefined
  let timeline: string | undefined

  async function* open(signal: AbortSignal): AsyncGenerator<ChangesMessage> {
    const context = ownContext(signal)
    if (!at) {
      at = await owner.head({}, context)
      seen.restart()
      if (timeline !== undefined && timeline !== at.timeline) writePositions.ended(schema, timeline)
      timeline = at.timeline
      yield { upto: at, changes: [], more: false, after: undefined, ageMs: 0, oversized: [] }
    }
    try {
      yield* owner.watch({ after: at, gatherMs: 0, kinds: [] }, context)
    } catch (err) {
      if (err instanceof Fault && err.code === 'OUT_OF_RANGE') at = undefined
      throw err
    }
  }
  const hear = ({ upto, changes, more, oversized }: ChangesMessage): Positions | null => {
    if (changes.length > 0) seen.apply(changes)
    if (oversized.length > 0) seen.restart() // it is not told what else they concern
    at = upto ?? at
    if (at) metrics.followPosition.set({ schema }, at.number)
    return at && !more ? { [schema]: at } : null
  }
  return follow(schema, log, open, hear, ({ ageMs }) => ageMs)
}
