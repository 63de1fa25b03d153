/** A leaky bucket of wrong guesses: so many at once, and one more whenever `everySeconds` have passed. */
export interface Limit {
  readonly burst: number // at least 2
  readonly everySeconds: number
}

/**
 * What is counted together: the guesses at an account from one source, those at an account from all sources, and those
 * from one source at all accounts.
 */
export type Scope = 'account-at-source' | 'account' | 'source'

/** The limits of a kind of secret. A source without an account in its guesses has only its own limit. */
export type Limits = Readonly<Partial<Record<Scope, Limit>>>

/** Seconds until a bucket is empty, by scope. Absent: it is empty. */
export type Debts = Readonly<Partial<Record<Scope, number>>>

/** What is known of a source and an account before a guess. */
export interface GuessHistory {
  readonly debts: Debts
  /** The account has proved itself from this source within the last weeks. */
  readonly isFamiliar: boolean
  /** A success must be recorded: there were wrong guesses, or the last success was long ago. */
  readonly isStale: boolean
}

/** Why a guess is refused unseen, and for how long. */
export interface Pause {
  readonly scope: Scope
  readonly seconds: number
}

/**
 * The longest pause of a guess, if any. A familiar source has only its own limit for the account: what others guess at
 * the account, or from behind the same address, does not lock its owner out.
 */
export function pauseOf(limits: Limits, { debts, isFamiliar }: GuessHistory): Pause | undefined {
  let longest: Pause | undefined
  for (const scope of scopes) {
    const limit = limits[scope]
    if (!limit || (isFamiliar && scope !== 'account-at-source')) continue
    const seconds = waitOf(limit, debts[scope] ?? 0)
    if (seconds > (longest?.seconds ?? 0)) longest = { scope, seconds }
  }
  return longest
}

export const scopes = ['account-at-source', 'account', 'source'] as const satisfies readonly Scope[]

/** Seconds until the bucket has room for one more. Not positive: it has. */
const waitOf = (limit: Limit, debtSeconds: number): number => debtSeconds - roomIn(limit)

/** The debt in seconds beyond which a guess is paused. */
export const roomIn = (limit: Limit | undefined): number =>
  limit ? (limit.burst - 1) * limit.everySeconds : Number.POSITIVE_INFINITY
