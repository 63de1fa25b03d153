import { followers } from '@overlay/process'
import { openDemand, reconnect, withWatchdog } from '@overlay/process/async'
import type { Positions } from '@overlay/rpc'
import { atRest, inUse, USE_MS } from './signs.js'

/** The stream of changes from the owner of cached rows. */
export interface Followed extends AsyncDisposable {
  /**
   * True while messages arrive: cached values are then valid until dropped. At rest they are rare: the question leads to
   * one, and to one each second while there are more questions.
   */
  trusted(): boolean
  /** True while the stream works. */
  isHeard(): boolean
  /** The positions up to which changes are applied, by schema. */
  positions(): Positions
}

export interface FollowLog {
  warn(facts: object, message: string): void
}

const FRESH_MS = 2000
const PAUSE_MS = 250

/**
 * Reads a stream until disposed. `open` starts it again after a failure, and where its signs of life are to come more
 * or less often. Each message, also an empty one, confirms that the stream works, except while `apply` returns null: then
 * the state is complete only after further messages. The content of a message may be older than the message: freshness
 * counts from the content.
 */
export function follow<M>(
  name: string,
  log: FollowLog,
  open: (signal: AbortSignal, signMs: number) => AsyncIterable<M>,
  apply: (message: M) => Positions | null,
  ageMsOf: (message: M) => number = () => 0,
): Followed {
  const stop = new AbortController()
  const { signal } = stop
  let freshAt = Number.NEGATIVE_INFINITY
  let heardAt = Number.NEGATIVE_INFINITY
  let positions: Positions = {}
  let watching = new AbortController()
  let signs = atRest
  const demand = openDemand(USE_MS, () => {
    if (signs === atRest) watching.abort(demand)
  })

  const running = reconnect({
    signal,
    firstMs: PAUSE_MS,
    longestMs: PAUSE_MS,
    async connect({ works }) {
      watching = new AbortController()
      signs = demand.lasts() ? inUse : atRest
      const { signMs, silenceMs } = signs
      const start = (signal: AbortSignal) => open(signal, signMs)
      for await (const message of withWatchdog(silenceMs, start, signal, watching.signal)) {
        const applied = apply(message)
        heardAt = performance.now()
        works()
        if (applied === null) continue
        positions = applied
        freshAt = Math.max(freshAt, performance.now() - ageMsOf(message))
        if (signs === inUse && !demand.lasts()) return
      }
      if (watching.signal.reason !== demand) throw new Error('the owner ended the stream')
    },
    onOutage: (err) => log.warn({ err, follows: name }, 'stream lost, trying again'),
  })
  const described = {
    schema: name,
    number: () => positions[name]?.number,
    silentMs: () => performance.now() - heardAt,
  }
  followers.add(described)
  return {
    trusted() {
      demand.note()
      return performance.now() - freshAt < FRESH_MS
    },
    isHeard: () => performance.now() - heardAt < signs.silenceMs,
    positions: () => positions,
    async [Symbol.asyncDispose]() {
      followers.delete(described)
      stop.abort()
      await running
    },
  }
}
