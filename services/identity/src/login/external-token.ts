import type { Context } from '@overlay/rpc'
import type { CredentialDeps } from '../credentials/credential-deps.js'
import { TokenError } from '../domain/external-token.js'
import type { TokenFacts } from '../external-tokens/external-tokens.js'
import { BEARER_TOKENS } from '../limits.js'
import type { SecondToken } from '../store/api-sessions.js'
import { type Person, subjectOfToken } from '../store/subjects.js'
import {
  about,
  identityIsEnabled,
  type Login,
  policyAllows,
  type Reason,
  refusalOf,
  type Step,
  subjectIsKnown,
} from './login.js'
import { refuseLogin } from './refusals.js'

const tokenIsVerified: Step = async (login) => {
  const { externalTokens, changeLog, now, bearerTokens, facts = {} } = login
  const [token] = bearerTokens
  if (token === undefined) return 'no token'
  try {
    const { signer, subject } = await externalTokens.verify(token, now, facts)
    login.subject = await subjectOfToken(changeLog.db, signer, subject)
    return undefined
  } catch (err) {
    if (!(err instanceof TokenError)) throw err
    Object.assign(facts, { detail: err.message })
    return err.reason
  }
}

const signerIsAllowed: Step = about(({ allowedSigners, signerId = '' }) =>
  allowedSigners.length === 0 || allowedSigners.includes(signerId) ? undefined : 'signer not allowed',
)

/** The order of checks of one token. */
const ofOneToken: readonly Step[] = [
  tokenIsVerified,
  subjectIsKnown,
  identityIsEnabled,
  policyAllows(({ isTokenAllowed }) => isTokenAllowed),
  signerIsAllowed,
]

/**
 * The first token that passes all checks logs in. Otherwise the first one is noted, with the reason against the other.
 */
const tokenIsAccepted: Step = async (login) => {
  let first: { readonly reason: Reason; readonly candidate: Login } | undefined
  for (const token of login.bearerTokens.slice(0, BEARER_TOKENS)) {
    const candidate: Login = { ...login, bearerTokens: [token], facts: {} }
    const reason = await refusalOf(ofOneToken, candidate)
    if (reason === undefined) {
      login.subject = candidate.subject
      return undefined
    }
    if (first) Object.assign(first.candidate.facts ?? {}, { otherToken: reason })
    first ??= { reason, candidate }
  }
  if (!first) return 'no token'
  login.subject = first.candidate.subject
  login.facts = first.candidate.facts ?? {}
  return first.reason
}

/** The order of checks. */
export const externalTokenSteps: readonly Step[] = [tokenIsAccepted]

/** Whose token is presented as the second factor, and of which signer it must be. */
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
  for (const token of bearerTokens.slice(0, BEARER_TOKENS)) {
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
