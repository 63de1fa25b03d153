import { reconnect, withWatchdog } from '@overlay/process/async'
import type { Positions } from '@overlay/rpc'
import { FRESH_MS, SILENCE_MS, STREAM_PAUSE_MS } from '../limits.js'
import { openStreamHealth } from './stream-health.js'

/** The stream of changes from the owner of cached rows. */
export interface Followed extends AsyncDisposable {
  /** True while messages arrive: cached values are then valid until dropped. */
  isFresh(): boolean
  /** True while the stream works. */
  isHeard(): boolean
  /** The positions up to which changes are applied, by schema. */
  positions(): Positions
}

export interface FollowLog {
  warn(facts: object, message: string): void
}

/**
 * Reads a stream until disposed. `open` starts it again after a failure. Each message, also an empty one, confirms that
 * the stream works. While `apply` returns null, the state is complete only after further messages. The content of a message may be older than the message: freshness
 * counts from the content.
 */
export function followStream<M>(
  name: string,
  log: FollowLog,
  open: (signal: AbortSignal) => AsyncIterable<M>,
  apply: (message: M) => Positions | null,
  ageMsOf: (message: M) => number = () => 0,
): Followed {
  const stop = new AbortController()
  const { signal } = stop
  let positions: Positions = {}
  const health = openStreamHealth(name, () => positions[name])

  const running = reconnect({
    signal,
    firstMs: STREAM_PAUSE_MS,
    longestMs: STREAM_PAUSE_MS,
    async connect({ works }) {
      for await (const message of withWatchdog(SILENCE_MS, open, signal)) {
        const applied = apply(message)
        health.hear()
        works()
        if (applied === null) continue
        positions = applied
        health.refresh(performance.now() - ageMsOf(message))
      }
      throw new Error('the owner ended the stream')
    },
    onOutage: (err) => log.warn({ err, follows: name }, 'stream lost, trying again'),
  })
  return {
    isFresh: () => health.ageMs() < FRESH_MS,
    isHeard: health.isHeard,
    positions: () => positions,
    async [Symbol.asyncDispose]() {
      health[Symbol.dispose]()
      stop.abort()
      await running
    },
  }
}
