import type { Context } from '@overlay/rpc'
import type { CredentialDeps } from '../credentials/deps.js'
import { TokenError } from '../domain/external-token.js'
import type { TokenFacts } from '../external-tokens/external-tokens.js'
import type { SecondToken } from '../store/api-sessions.js'
import type { Person } from '../store/subjects.js'
import { MOST_TOKENS } from './external-token.js'
import { refuseLogin } from './refuse-login.js'

/** Whose token is presented beside a first factor, and of which signer it must be. */
export type Demand = Pick<Person, 'identityId' | 'identityName' | 'externalId' | 'requiredSigner'>

type Deps = Pick<CredentialDeps, 'externalTokens' | 'noteRefusal'>

/**
 * The first of the bearer tokens that satisfies the auth policy. Undefined: it demands none, or none does; why not is
 * noted.
 * differs: the token must name the same identity.
 */
export async function secondToken(
  { externalTokens, noteRefusal }: Deps,
  context: Context,
  demand: Demand,
  bearerTokens: readonly string[],
): Promise<SecondToken | undefined> {
  const { identityId, identityName, externalId, requiredSigner } = demand
  if (requiredSigner === null) return undefined
  for (const token of bearerTokens.slice(0, MOST_TOKENS)) {
    const facts: TokenFacts = {}
    const refuse = (reason: string, detail?: string): void =>
      refuseLogin(noteRefusal, context, {
        method: 'second token',
        reason,
        identityId,
        identityName,
        ...facts,
        detail,
      })
    try {
      const { signer, subject, expiresAtMs } = await externalTokens.verify(token, new Date(), facts)
      if (signer.id !== requiredSigner) refuse('signer not allowed')
      else if (subject !== (signer.useExternalId ? externalId : identityId)) refuse('other identity')
      else return { signerId: requiredSigner, untilMs: expiresAtMs }
    } catch (err) {
      if (!(err instanceof TokenError)) throw err
      refuse(err.reason, err.message)
    }
  }
  return undefined
}
