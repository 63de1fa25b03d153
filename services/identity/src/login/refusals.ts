import { metrics } from '@overlay/process'
import { type Context, sourceOf } from '@overlay/rpc'
import type { NoteRefusal } from '@overlay/service'
import type { Guess, Limits } from '@overlay/store/guesses'

/** The kinds of secrets that clients guess here. */
export type Secret = 'password' | 'code' | 'token'

/** A secret of the request. Accounts are user names of passwords, and identities of codes. */
export const guessOf = (
  secret: Secret,
  { sourceAddress }: Pick<Context, 'sourceAddress'>,
  account?: string,
): Guess => ({
  kind: secret,
  limits: limits[secret],
  source: sourceOf(sourceAddress),
  ...(account !== undefined && { account }),
})

/**
 * Passwords: 1,450 guesses a day from one source, and as many from all unfamiliar ones. Codes, for an attacker with
 * the password: 24 attempts a day guess one of a million codes with a chance of 0.01 %. Tokens cannot be guessed: their
 * limit only slows clients that repeat a bad one.
 */
export const limits: Readonly<Record<Secret, Limits>> = {
  password: {
    'account-at-source': { burst: 10, everySeconds: 60 },
    account: { burst: 100, everySeconds: 60 },
    source: { burst: 200, everySeconds: 15 },
  },
  code: {
    'account-at-source': { burst: 10, everySeconds: 5 * 60 },
    account: { burst: 30, everySeconds: 60 * 60 },
    source: { burst: 100, everySeconds: 60 },
  },
  token: { source: { burst: 300, everySeconds: 1 } },
}

/** Counts and logs a refused login, or a refused code of a second factor. */
export const refuseLogin: (note: NoteRefusal, ...facts: Parameters<NoteRefusal>) => void = (
  note,
  context,
  refused,
) => {
  metrics.loginRefused.inc({ method: refused.method, reason: refused.reason })
  note(context, refused)
}
