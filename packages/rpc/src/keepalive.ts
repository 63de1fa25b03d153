import { Fault } from './fault.js'
import { LOST_BEATS, MAX_UNANSWERED_BEATS, QUIET_BEATS_OF_STREAMS } from './limits.js'

/** What waits for a replica. */
export type Waiting = 'calls' | 'streams' | 'nothing'

/**
 * Detects a replica that does not respond. A process that hangs keeps its connections open, so their state does not
 * show it. Counts beats, not time: after a pause of our own process, waiting messages are read before the next beat.
 */
export interface Keepalive {
  isResponsive(): boolean
  /** A message of the replica has arrived. */
  received(): void
  /** Counts a beat, and says what the replica needs: a ping while something waits and nothing arrives. */
  beat(waiting: Waiting): 'ping' | 'reset' | 'nothing'
  /** Forgets missed beats: there is no connection. */
  reset(): void
  /** Calls `end` when the replica is unresponsive and another one is not. Returns a function that removes `end`. */
  onUnresponsive(end: () => void): () => void
  endAll(): void
  /** Whether there is anything that `endAll` would end. */
  hasStreams(): boolean
  /** Whether a ping is unanswered. */
  isAsked(): boolean
}

export function startKeepalive(): Keepalive {
  const ends = new Set<() => void>()
  let quietBeats = 0 // without a message
  let unanswered: number | undefined // beats since the first ping without an answer
  const reset = (): void => {
    quietBeats = 0
    unanswered = undefined
  }
  return {
    isResponsive: () => (unanswered ?? 0) < MAX_UNANSWERED_BEATS,
    received: reset,
    reset,
    beat(waiting) {
      if (unanswered !== undefined) return ++unanswered % LOST_BEATS === 0 ? 'reset' : 'ping'
      quietBeats++
      const isDue = waiting === 'calls' ? quietBeats > 1 : quietBeats > QUIET_BEATS_OF_STREAMS
      if (waiting === 'nothing' || !isDue) return 'nothing'
      unanswered = 0
      return 'ping'
    },
    onUnresponsive(end) {
      const entry = (): void => end() // the same function may be registered twice
      ends.add(entry)
      return () => ends.delete(entry)
    },
    endAll() {
      for (const end of [...ends]) end()
    },
    hasStreams: () => ends.size > 0,
    isAsked: () => unanswered !== undefined,
  }
}

/** The cause of a fault that ends a call whose replica does not respond. Another replica may be called. */
export class UnresponsiveReplica extends Error {
  override readonly name = 'UnresponsiveReplica'
}

/** The fault that ends the calls of an unresponsive replica. */
export const unresponsive = (): Fault => new Fault('UNAVAILABLE', undefined, new UnresponsiveReplica())
