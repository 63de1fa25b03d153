/** What is stored about the published keys of a signer. Times in milliseconds since 1970, by the clock of the database. */
export interface KeySetState {
  /** The last successful fetch. Null: there was none. */
  readonly fetchedAtMs: number | null
  readonly failedAtMs: number | null
  /** Consecutive failed fetches. */
  readonly failures: number
  /** Key ids that were not there, and when that was found. */
  readonly missed: Readonly<Record<string, number>>
  readonly nowMs: number
}

const MINUTE_MS = 60_000
/** From then on the next use causes a fetch, and does not wait for it. */
const AGING_MS = 5 * MINUTE_MS
/** From then on a use waits for a fetch. */
const OLD_MS = 15 * MINUTE_MS
/** From then on the keys do not count: the issuer has been away for too long. */
const LOST_MS = 24 * 60 * MINUTE_MS
const MISS_MS = MINUTE_MS
const MOST_MISSES = 5
const FIRST_PAUSE_MS = 1000

export type KeySetAge = 'fresh' | 'aging' | 'old' | 'lost'

export function ageOf({ fetchedAtMs, nowMs }: Pick<KeySetState, 'fetchedAtMs' | 'nowMs'>): KeySetAge {
  if (fetchedAtMs === null) return 'lost'
  const age = nowMs - fetchedAtMs
  if (age >= LOST_MS) return 'lost'
  if (age >= OLD_MS) return 'old'
  return age >= AGING_MS ? 'aging' : 'fresh'
}

/**
 * Whether a use may cause a fetch. Failed fetches are repeated after a pause that doubles up to a minute.
 * @param missing the key id that is not in the set
 */
export function isFetchDue(state: KeySetState, missing: string | undefined): boolean {
  const { failedAtMs, failures, nowMs } = state
  if (failures > 0 && failedAtMs !== null && nowMs - failedAtMs < pauseMs(failures)) return false
  if (ageOf(state) !== 'fresh') return true
  if (missing === undefined) return false
  const recent = recentlyMissed(state)
  return !Object.hasOwn(recent, missing) && Object.keys(recent).length < MOST_MISSES
}

const pauseMs = (failures: number): number => Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), MINUTE_MS)

/** Key ids that cause no fetch again. At most five, whatever clients send. */
export const recentlyMissed = ({
  missed,
  nowMs,
}: Pick<KeySetState, 'missed' | 'nowMs'>): KeySetState['missed'] =>
  Object.fromEntries(Object.entries(missed).filter(([, atMs]) => nowMs - atMs < MISS_MS))
