import type { Positions } from '@overlay/rpc'
import { reconnect, withWatchdog } from '../async/reconnect.js'
import { metrics } from '../process/metrics.js'

/** The stream of changes from the owner of cached rows. */
export interface Followed extends AsyncDisposable {
  /** True while messages arrive: cached values are then valid until dropped. */
  trusted(): boolean
  /** The positions up to which changes are applied, by schema. */
  positions(): Positions
}

export interface FollowLog {
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
  log: FollowLog,
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
