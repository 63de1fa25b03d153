import { TokenError } from '../domain/external-token.js'
import { subjectOfToken } from '../store/subjects.js'
import { about, type Login, type Reason, refusalOf, type Step } from './login.js'
import { identityIsEnabled, policyAllows, subjectIsKnown } from './steps.js'

/** wire: how many bearer tokens of a request are tried. */
export const MOST_TOKENS = 2

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

/** The first token that passes all checks logs in. Otherwise the first one is noted, with the reason against the other. */
const tokenIsAccepted: Step = async (login) => {
  let first: { readonly reason: Reason; readonly candidate: Login } | undefined
  for (const token of login.bearerTokens.slice(0, MOST_TOKENS)) {
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
export const externalToken: readonly Step[] = [tokenIsAccepted]
