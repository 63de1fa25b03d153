/** Failed logins by one user name, from one network or from all networks. */
export interface Failures {
  readonly failures: number
  readonly secondsAgo: number
}

/** Earlier attempts at a user name from a network, read before a password is compared. */
export interface AttemptHistory {
  readonly here: Failures
  readonly everywhere: Failures
  /** The name has logged in from this network within the last days. */
  readonly isFamiliar: boolean
  /** A success must be recorded: there were failures, or the last success was long ago. */
  readonly isStale: boolean
}

/** Failures expire after this time without another one. */
export const forgottenAfterSeconds = 15 * 60

const freeHere = 10
const freeEverywhere = 100
const longestSeconds = 60

/**
 * Each failure beyond the free ones doubles the pause, up to a minute. The pause of a name at all networks does not hold
 * at those from which it has logged in, so that guesses from elsewhere do not lock its owner out.
 */
export const isPaused = ({ here, everywhere, isFamiliar }: Omit<AttemptHistory, 'isStale'>): boolean =>
  isPausing(here, freeHere) || (!isFamiliar && isPausing(everywhere, freeEverywhere))

const isPausing = ({ failures, secondsAgo }: Failures, free: number): boolean =>
  failures >= free && secondsAgo < Math.min(2 ** (failures - free), longestSeconds)
