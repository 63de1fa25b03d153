import { FETCH_PAUSE_MS, KEYS_AGING_MS, KEYS_LOST_MS, KEYS_OLD_MS, MISSED_PAUSE_MS } from '../limits.js'
/**
 * What is stored about the published keys of a signer. Times in milliseconds since 1970, by the clock of the database.
 */
export interface KeySetState {
  /** The last successful fetch. Null: there was none. */
  readonly fetchedAtMs: number | null
  readonly failedAtMs: number | null
  /** Consecutive failed fetches. */
  readonly failures: number
  /** Consecutive fetches for a key id that they did not bring. */
  readonly misses: number
  readonly nowMs: number
}

const MINUTE_MS = 60_000

export type KeySetAge = 'fresh' | 'aging' | 'old' | 'lost'

export function ageOf({ fetchedAtMs, nowMs }: Pick<KeySetState, 'fetchedAtMs' | 'nowMs'>): KeySetAge {
  if (fetchedAtMs === null) return 'lost'
  const age = nowMs - fetchedAtMs
  if (age >= KEYS_LOST_MS) return 'lost'
  if (age >= KEYS_OLD_MS) return 'old'
  return age >= KEYS_AGING_MS ? 'aging' : 'fresh'
}

/**
 * Whether a use may cause a fetch. Those that failed, or brought no key of the name, are repeated after a pause that
 * doubles: issuers use new keys before all of their servers publish them.
 * @param isMissing the set has no key of the name
 */
export function isFetchDue(state: KeySetState, isMissing: boolean): boolean {
  const { fetchedAtMs, failedAtMs, failures, nowMs } = state
  if (nowMs - (failedAtMs ?? 0) < pauseMs(failures, MINUTE_MS)) return false
  if (ageOf(state) !== 'fresh') return true
  return isMissing && nowMs - (fetchedAtMs ?? 0) >= pauseMs(state.misses, MISSED_PAUSE_MS)
}

const pauseMs = (count: number, longestMs: number): number =>
  count === 0 ? 0 : Math.min(FETCH_PAUSE_MS * 2 ** (count - 1), longestMs)

/** The count after a fetch that did not bring the key. */
export const missesAfter = ({ misses, fetchedAtMs, nowMs }: KeySetState): number =>
  nowMs - (fetchedAtMs ?? 0) < MINUTE_MS ? Math.min(misses + 1, 1000) : 1
