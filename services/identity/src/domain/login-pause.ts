/** Failed logins by one user name, from one network or from all together. */
export interface Failures {
  readonly failures: number
  readonly secondsAgo: number
}

/** What is known of a user name at a network before a password is compared. */
export interface Tries {
  readonly here: Failures
  readonly everywhere: Failures
  /** The name has logged in from this network lately. */
  readonly isFamiliar: boolean
  /** A success would have to be noted: there were failures, or the last one was long ago. */
  readonly isStale: boolean
}

/** Failures count no longer after so long without one more. */
export const forgottenAfterSeconds = 15 * 60

const freeHere = 10
const freeEverywhere = 100
const longestSeconds = 60

/**
 * Each failure beyond the free ones doubles a pause, up to a minute. The pause of a name at all networks does not hold
 * at those from which it has logged in: guesses from elsewhere keep its owner out of nothing.
 */
export const isPaused = ({ here, everywhere, isFamiliar }: Omit<Tries, 'isStale'>): boolean =>
  isPausing(here, freeHere) || (!isFamiliar && isPausing(everywhere, freeEverywhere))

const isPausing = ({ failures, secondsAgo }: Failures, free: number): boolean =>
  failures >= free && secondsAgo < Math.min(2 ** (failures - free), longestSeconds)
