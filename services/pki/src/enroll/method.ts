import { createHash } from 'node:crypto'
import {
  type Context,
  type EnrollRequest,
  type EnrollResponse,
  Fault,
  type IdentityServiceService,
  type Methods,
  type Position,
  type SessionsServiceService,
} from '@overlay/rpc'
import { type Csr, CsrError, readCsr } from '../domain/csr.js'
import type { Enrollment } from '../domain/enrollment.js'
import type { Keyring } from '../keys/keyring.js'

/** What a request offers for its token, found to be good. */
export interface Offer {
  /** Digest of what is redeemed: the public key, the user name. */
  readonly hash: string
  /** Signs what the answer carries. */
  issue(keyring: Keyring): Promise<Issued>
  /** Tells the owner of the identity or router. */
  admit(issued: Issued, context: Context): Promise<Admitted>
}

export interface Admitted {
  /** False: the enrollment was redeemed before. */
  readonly isFirst: boolean
  /** Where the owner's changes say that it is redeemed. */
  readonly position: Position | undefined
}

export type Issued = Omit<EnrollResponse, 'method'>

/** Checks a request; what it lacks is a Fault, and its token stays good. */
export type Method = (request: EnrollRequest, enrollment: Enrollment, context: Context) => Promise<Offer>

export interface Owners {
  readonly identity: Pick<Methods<IdentityServiceService>, 'addAuthenticator'>
  readonly sessions: Pick<Methods<SessionsServiceService>, 'admitRouter'>
}

export const nothingIssued: Issued = { certPem: '', chainPem: '', serverChainPem: '', caPem: '' }

export const hashOf = (redeemed: string | Uint8Array): string =>
  createHash('sha256').update(redeemed).digest('hex')

/** `word`: what is said instead of the exact reason. */
export async function csrOf(pem: string, word?: string): Promise<Csr> {
  try {
    return await readCsr(pem)
  } catch (err) {
    if (!(err instanceof CsrError)) throw err
    throw new Fault('COULD_NOT_PROCESS_CSR', word ?? err.message, err)
  }
}
