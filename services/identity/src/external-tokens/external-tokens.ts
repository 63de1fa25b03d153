import type { KeyObject } from 'node:crypto'
import type { ChangeLog } from '@overlay/store/change-log'
import { errors, type JWTPayload, jwtVerify } from 'jose'
import { headOf, keyFor, subjectIn, TokenError } from '../domain/external-token.js'
import type { Signer } from '../store/signers.js'
import type { FetchRules } from './fetch-keys.js'
import { openSignerKeys } from './signer-keys.js'

export interface TokenSettings extends FetchRules {
  /** How far the clocks of issuers may differ from ours. */
  readonly skewSeconds: number
  /** differs: tokens without `exp` are refused by default. */
  readonly isExpiryRequired: boolean
}

/** A token that its signer has signed for this network, and that is valid now. */
export interface VerifiedToken {
  readonly signer: Signer
  /** The identity or external id that it names. */
  readonly subject: string
  /** Undefined: it does not expire. */
  readonly expiresAtMs: number | undefined
}

/** Of what is tried: the names by which operators find the cause of a refusal. */
export interface TokenFacts {
  issuer?: string
  kid?: string
  signerId?: string
  signer?: string
  /** Of a token for another one: its audiences, and that of the signer. */
  audience?: string
  expectedAudience?: string
}

export interface ExternalTokens extends AsyncDisposable {
  /** Notes in `facts` what it finds. Throws TokenError. */
  verify(token: string, now: Date, facts: TokenFacts): Promise<VerifiedToken>
}

/** Checks form and algorithm, then signer and key, then the signature, then the claims. */
export function openExternalTokens(
  changeLog: Pick<ChangeLog, 'db' | 'log'>,
  settings: TokenSettings,
): ExternalTokens {
  const keys = openSignerKeys(changeLog, settings)
  return {
    async verify(token, now, facts) {
      const { algorithm, kid, issuer } = headOf(token)
      Object.assign(facts, { issuer, kid })
      const { signer, keys: found } = await keys.find(issuer, kid, ({ id, name }) => {
        Object.assign(facts, { signerId: id, signer: name })
      })
      const key = keyFor(algorithm, found)
      if (!key) throw new TokenError('unsafe token', 'its algorithm is not that of the key')
      const rules = { ...settings, algorithm, now }
      const claims = await verified(token, signer, key, rules, facts)
      return {
        signer,
        subject: subjectIn(claims, signer.claimsProperty),
        expiresAtMs: claims.exp === undefined ? undefined : (claims.exp + settings.skewSeconds) * 1000,
      }
    },
    [Symbol.asyncDispose]: () => keys[Symbol.asyncDispose](),
  }
}

interface VerificationRules extends TokenSettings {
  readonly algorithm: string
  readonly now: Date
}

async function verified(
  token: string,
  { issuer, audience }: Signer,
  key: KeyObject,
  { algorithm, now, skewSeconds, isExpiryRequired }: VerificationRules,
  facts: TokenFacts,
): Promise<JWTPayload> {
  // the library ignores an empty audience
  if (audience === '') throw new TokenError('wrong audience', 'the signer has no audience')
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [algorithm],
      issuer,
      audience,
      clockTolerance: skewSeconds,
      currentDate: now,
      requiredClaims: isExpiryRequired ? ['exp'] : [],
    })
    return payload
  } catch (err) {
    if (err instanceof errors.JWTClaimValidationFailed && err.claim === 'aud')
      Object.assign(facts, { audience: audienceIn(err.payload), expectedAudience: audience })
    throw tokenErrorOf(err)
  }
}

const audienceIn = ({ aud }: JWTPayload): string =>
  aud === undefined ? '(none)' : [aud].flat().map(String).join(', ')

function tokenErrorOf(err: unknown): TokenError {
  const cause = { cause: err }
  if (err instanceof errors.JWTExpired) return new TokenError('token expired', 'exp is in the past', cause)
  if (err instanceof errors.JWSSignatureVerificationFailed)
    return new TokenError('wrong signature', 'the key of the signer has not signed it', cause)
  if (!(err instanceof errors.JWTClaimValidationFailed))
    return new TokenError('malformed token', 'it cannot be verified', cause)
  const { claim, reason } = err
  if (claim === 'aud')
    return new TokenError('wrong audience', 'aud does not contain that of the signer', cause)
  if (claim === 'nbf' && reason === 'check_failed')
    return new TokenError('token not valid yet', 'nbf is in the future', cause)
  if (claim === 'exp' && reason === 'missing')
    return new TokenError('token without expiry', 'it has no exp', cause)
  return new TokenError('malformed token', `${claim}: ${reason}`, cause)
}
