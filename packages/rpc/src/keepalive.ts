/** How long a replica is waited for: this many beats without a sign of life. */
const MISSED_BEATS = 4
export const BEAT_MS = 500

/** Whether a replica answers. A process that hangs keeps its connections open, so these do not tell. */
export interface Keepalive {
  answers(): boolean
  /** Something has arrived from the replica. */
  heard(): void
  /** Counts beats, not time: after a pause of our own process what has arrived meanwhile is read before the next. */
  beat(): void
  /** Forgets what was missed: there is no connection that could be silent. */
  reset(): void
  /** Calls `end` when the replica falls silent while another one answers; the answer takes it back. */
  whenSilent(end: () => void): () => void
  endAll(): void
}

export function startKeepalive(): Keepalive {
  const ends = new Set<() => void>()
  let missed = 0
  let isHeard = true
  return {
    answers: () => missed < MISSED_BEATS,
    heard() {
      missed = 0
      isHeard = true
    },
    beat() {
      if (!isHeard) missed++
      isHeard = false
    },
    reset() {
      missed = 0
      isHeard = true
    },
    whenSilent(end) {
      const entry = (): void => end() // the same function may be registered twice
      ends.add(entry)
      return () => ends.delete(entry)
    },
    endAll() {
      for (const end of [...ends]) end()
    },
  }
}

/** Why a call ended: its replica fell silent, so another one may be asked. */
export class SilentReplica extends Error {
  override readonly name = 'SilentReplica'
}
