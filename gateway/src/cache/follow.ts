import { reconnect, withWatchdog } from '@overlay/platform/async'
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

/** The stream of changes from the owner of cached rows. */
export interface Followed extends AsyncDisposable {
  /** True while messages arrive: cached values are then valid until dropped. */
  trusted(): boolean
  /** The positions up to which changes are applied, by schema. */
  positions(): Positions
}

export interface Log {
  warn(facts: object, message: string): void
}

const FRESH_MS = 2000
/** The owner sends a message each second: a stream that is silent for so long is dead. */
const STREAM_SILENCE_MS = 5000
const PAUSE_MS = 250

/**
 * Reads a stream until disposed. `open` starts it again after a failure. Each message, also an empty one, confirms that
 * the stream works, except while `apply` returns null: then the state is complete only after further messages. The
 * content of a message may be older than the message: freshness counts from the content.
 */
export function follow<M>(
  name: string,
  log: Log,
  open: (signal: AbortSignal) => AsyncIterable<M>,
  apply: (message: M) => Positions | null,
  ageMsOf: (message: M) => number = () => 0,
): Followed {
  const stop = new AbortController()
  const { signal } = stop
  let freshAt = Number.NEGATIVE_INFINITY
  let positions: Positions = {}

  const running = reconnect({
    signal,
    firstMs: PAUSE_MS,
    longestMs: PAUSE_MS,
    async connect({ works }) {
      for await (const message of withWatchdog(STREAM_SILENCE_MS, open, signal)) {
        const applied = apply(message)
        if (applied === null) continue
        positions = applied
        freshAt = Math.max(freshAt, performance.now() - ageMsOf(message))
        metrics.followHeard.setToCurrentTime({ schema: name })
        works()
      }
      throw new Error('the owner ended the stream')
    },
    onOutage: (err) => log.warn({ err, follows: name }, 'stream lost, trying again'),
  })
  return {
    trusted: () => performance.now() - freshAt < FRESH_MS,
    positions: () => positions,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}

/**
 * Follows the changes of a service's rows. `restart` drops all cached values of the service. Both get the position that
 * reads must have reached to see the changes.
 */
export function followChanges(
  schema: string,
  owner: Changes,
  log: Log,
  writePositions: WritePositions,
  effects: {
    apply(changes: ChangesMessage['changes'], seen: Positions): void
    restart(seen: Positions): void
  },
): Followed {
  let at: Position | undefined
  let timeline: string | undefined

  async function* open(signal: AbortSignal): AsyncGenerator<ChangesMessage> {
    const context = ownContext(signal)
    if (!at) {
      at = await owner.head({}, context)
      effects.restart({ [schema]: at })
      if (timeline !== undefined && timeline !== at.timeline) writePositions.forget(schema, timeline)
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
    at = upto ?? at
    const seen = at ? { [schema]: at } : {}
    if (changes.length > 0) effects.apply(changes, seen)
    if (oversized.length > 0) effects.restart(seen) // the message does not name the identities of these rows
    if (at) metrics.followPosition.set({ schema }, at.number)
    return at && !more ? { [schema]: at } : null
  }
  return follow(schema, log, open, hear, ({ ageMs }) => ageMs)
}
