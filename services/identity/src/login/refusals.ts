import { metrics } from '@overlay/process'
import { type Context, sourceOf } from '@overlay/rpc'
import type { NoteRefusal } from '@overlay/service'
import type { Guess } from '@overlay/store/guesses'
import { guessLimits } from '../limits.js'

/** The kinds of secrets that clients guess here. */
export type Secret = keyof typeof guessLimits

/** A secret of the request. Accounts are user names of passwords, and identities of codes. */
export const guessOf = (
  secret: Secret,
  { sourceAddress }: Pick<Context, 'sourceAddress'>,
  account?: string,
): Guess => ({
  kind: secret,
  limits: guessLimits[secret],
  source: sourceOf(sourceAddress),
  ...(account !== undefined && { account }),
})

/** Counts and logs a refused login, or a refused code of a second factor. */
export const refuseLogin: (note: NoteRefusal, ...facts: Parameters<NoteRefusal>) => void = (
  note,
  context,
  refused,
) => {
  metrics.loginRefused.inc({ method: refused.method, reason: refused.reason })
  note(context, refused)
}
