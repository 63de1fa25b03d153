/** A replica is unresponsive after this many beats without a message from it. */
const MAX_MISSED_BEATS = 4
export const BEAT_MS = 500

/**
 * Detects a replica that does not respond. A process that hangs keeps its connections open, so their state does not
 * show it.
 */
export interface Keepalive {
  isResponsive(): boolean
  /** A message of the replica has arrived. */
  received(): void
  /**
   * Counts a beat. Counts beats, not time: after a pause of our own process, waiting messages are read before the next
   * beat.
   */
  beat(): void
  /** Forgets missed beats: there is no connection. */
  reset(): void
  /** Calls `end` when the replica is unresponsive and another one is not. Returns a function that removes `end`. */
  onUnresponsive(end: () => void): () => void
  endAll(): void
}

export function startKeepalive(): Keepalive {
  const ends = new Set<() => void>()
  let missed = 0
  let hasReceived = true
  const reset = (): void => {
    missed = 0
    hasReceived = true
  }
  return {
    isResponsive: () => missed < MAX_MISSED_BEATS,
    received: reset,
    reset,
    beat() {
      if (!hasReceived) missed++
      hasReceived = false
    },
    onUnresponsive(end) {
      const entry = (): void => end() // the same function may be registered twice
      ends.add(entry)
      return () => ends.delete(entry)
    },
    endAll() {
      for (const end of [...ends]) end()
    },
  }
}

/** The cause of a fault that ends a call whose replica does not respond. Another replica may be called. */
export class UnresponsiveReplica extends Error {
  override readonly name = 'UnresponsiveReplica'
}
