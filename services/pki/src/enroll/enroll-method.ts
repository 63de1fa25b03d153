import { createHash } from 'node:crypto'
import type {
  Context,
  EnrollRequest,
  EnrollResponse,
  IdentityServiceService,
  Methods,
  Position,
  SessionsServiceService,
} from '@overlay/rpc'
import type { Enrollment } from '../domain/enrollment.js'
import type { Keyring } from '../keys/keyring.js'

/** Checks a request against its enrollment. A refusal is a Fault, and the token stays valid. */
export type EnrollMethod = (
  request: EnrollRequest,
  enrollment: Enrollment,
  context: Context,
) => Promise<Redemption>

/** The remaining steps of a request that has passed its checks. */
export interface Redemption {
  /**
   * What marks the claim: a digest of what is redeemed, such as the public key or the user name. Absent: none is needed,
   * because the owner costs little and admits one of concurrent requests.
   */
  readonly hash?: string
  /** Asks other services for what `issue` needs, before the request takes one of the few places of those that sign. */
  prepare?(keyring: Keyring): Promise<void>
  /** Signs what the answer carries. */
  issue(keyring: Keyring): Promise<Issued>
  /** Stores the outcome at the owner of the identity or router. */
  register(issued: Issued, context: Context): Promise<Registration>
}

export interface Registration {
  /** False: the enrollment was redeemed before. */
  readonly isFirst: boolean
  /** Where the owner's changes report that it is redeemed. */
  readonly position: Position | undefined
}

export type Issued = Omit<EnrollResponse, 'method'>

/** The services that own what is enrolled. */
export interface Owners {
  readonly identity: Pick<Methods<IdentityServiceService>, 'addAuthenticator'>
  readonly sessions: Pick<Methods<SessionsServiceService>, 'admitRouter' | 'claimRouterHosts'>
}

export const nothingIssued: Issued = { certPem: '', chainPem: '', serverChainPem: '', caPem: '' }

export const hashOf = (redeemed: string | Uint8Array): string =>
  createHash('sha256').update(redeemed).digest('hex')
