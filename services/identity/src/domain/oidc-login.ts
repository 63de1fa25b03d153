import { createHash } from 'node:crypto'
import { authQueriesOf, type Demands } from './auth-queries.js'
import { sameText } from './same-text.js'

/** How far a login is. */
export interface Progress {
  /** The first factor has been accepted, and the identity still exists and is enabled. */
  readonly isIdentified: boolean
  readonly hasVerifiedFactor: boolean
  readonly isMfaComplete: boolean
  /** The signer of the external token that was presented as the second factor. */
  readonly secondSignerId: string | null
  /** Of the current auth policy. */
  readonly demands: Demands
}

/** What a login needs besides the first factor. */
export interface Missing {
  readonly needsCode: boolean
  readonly needsEnrollment: boolean
  readonly needsToken: boolean
}

export function missingOf({ hasVerifiedFactor, isMfaComplete, secondSignerId, demands }: Progress): Missing {
  const needsCode = (hasVerifiedFactor || demands.requireTotp) && !isMfaComplete
  return {
    needsCode,
    needsEnrollment: needsCode && !hasVerifiedFactor,
    needsToken: demands.requireExtJwtSigner !== null && demands.requireExtJwtSigner !== secondSignerId,
  }
}

export function isComplete(progress: Progress): boolean {
  const { needsCode, needsToken } = missingOf(progress)
  return progress.isIdentified && !needsCode && !needsToken
}

/** The authQueries of what is missing. TOTP says whether the identity must enroll first. */
export function loginQueries(progress: Progress): object[] {
  const { needsCode, needsEnrollment, needsToken } = missingOf(progress)
  const { demands } = progress
  const factors = {
    isMfaRequired: needsCode,
    isMfaComplete: !needsCode,
    secondSigner: progress.secondSignerId,
  }
  const rest = {
    ...demands,
    requireTotp: needsCode,
    requireExtJwtSigner: needsToken ? demands.requireExtJwtSigner : null,
  }
  return authQueriesOf(factors, rest).map((query) =>
    'typeId' in query && query.typeId === 'MFA' ? { ...query, isTotpEnrolled: !needsEnrollment } : query,
  )
}

/** Whether the verifier belongs to the S256 challenge (RFC 7636). */
export const verifies = (verifier: string, challenge: string): boolean =>
  /^[\w.~-]{43,128}$/.test(verifier) &&
  sameText(createHash('sha256').update(verifier).digest('base64url'), challenge)
