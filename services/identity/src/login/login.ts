import type { X509Certificate } from 'node:crypto'
import type { Context } from '@overlay/rpc'
import type { CredentialDeps } from '../credentials/credential-deps.js'
import { isDisabled } from '../domain/disabled.js'
import type { TokenReason } from '../domain/external-token.js'
import type { TokenFacts } from '../external-tokens/external-tokens.js'
import type { CaCopy } from '../store/cas.js'
import type { Subject } from '../store/subjects.js'

/** What was presented, what the steps check it with, and what they have found so far. */
export interface Login extends CredentialDeps {
  readonly context: Context
  readonly username: string
  readonly password: string
  readonly certificates: readonly X509Certificate[] // leaf first
  /** The client may have presented more certificates. */
  readonly isLeafAlone: boolean
  /** Authorities of the network; an earlier search has found that the certificates do not lead to them. */
  readonly untrustedBy: readonly X509Certificate[] | undefined
  readonly bearerTokens: readonly string[]
  readonly now: Date
  /** The authority that issued the certificate, if it is not the network. */
  ca?: CaCopy
  subject?: Subject | undefined
  passwordMatches?: boolean
  /** What is noted with a refusal. Never a token. */
  facts?: TokenFacts & { readonly detail?: string; readonly otherToken?: string }
}

/** Why a login is refused. For metrics and the log only: clients do not learn it. */
export type Reason =
  | 'unknown'
  | 'disabled'
  | 'method not allowed'
  | 'wrong password'
  | 'no certificate'
  | 'untrusted certificate'
  | 'certificate out of date'
  | 'no token'
  | 'signer not allowed'
  | TokenReason
  | 'changed meanwhile'

/** One check. Undefined: the next step follows. */
export type Step = (login: Login) => Reason | undefined | Promise<Reason | undefined>

/** The first reason against the login. */
export async function refusalOf(steps: readonly Step[], login: Login): Promise<Reason | undefined> {
  for (const step of steps) {
    const reason = await step(login)
    if (reason) return reason
  }
  return undefined
}

/** A check of the subject that an earlier step has found. */
export const about =
  (check: (subject: Subject, login: Login) => Reason | undefined | Promise<Reason | undefined>): Step =>
  (login) =>
    login.subject ? check(login.subject, login) : 'unknown'

export const subjectIsKnown: Step = about(() => undefined)

export const identityIsEnabled: Step = about((subject, { now }) =>
  isDisabled(subject, now) ? 'disabled' : undefined,
)

export const policyAllows = (allows: (subject: Subject) => boolean): Step =>
  about((subject) => (allows(subject) ? undefined : 'method not allowed'))
