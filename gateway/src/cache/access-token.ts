import type { KeyObject } from 'node:crypto'
import { TOKEN_ALGORITHM } from '@overlay/process/tokens'
import { readTokenHead, TokenHeadError } from '@overlay/x509'
import { errors, type JWTPayload, jwtVerify } from 'jose'
import { CLOCK_SKEW_SECONDS } from '../limits.js'

/** What a valid access token says. */
export interface AccessToken {
  readonly apiSessionId: string
  readonly identityId: string
  readonly keyId: string
  readonly expiresAtMs: number
}

export interface AccessTokenOptions {
  readonly issuer: string
  /** A published key. */
  readonly keyOf: (keyId: string) => KeyObject | undefined | Promise<KeyObject | undefined>
  readonly now: () => number
}

/** A token that is no access token of this network. */
export class RefusedToken extends Error {
  override readonly name = 'RefusedToken'

  constructor(
    readonly reason: 'size' | 'header' | 'key' | 'signature' | 'claims' | 'expired',
    cause?: unknown,
  ) {
    super(`access token refused: ${reason}`, { cause })
  }
}

const algorithms = [TOKEN_ALGORITHM] as const

/**
 * Verifies an access token. No key is looked up for a token that is too large or has another algorithm than RS256.
 * Throws a RefusedToken.
 */
export async function verifyAccessToken(
  token: string,
  { issuer, keyOf, now }: AccessTokenOptions,
): Promise<AccessToken> {
  const keyId = keyIdOf(token)
  const key = await keyOf(keyId)
  if (!key) throw new RefusedToken('key')
  const { payload } = await jwtVerify(token, key, {
    algorithms: [...algorithms],
    typ: 'JWT',
    issuer,
    audience: [...CLIENTS],
    requiredClaims: ['exp', 'nbf', 'sub'],
    clockTolerance: CLOCK_SKEW_SECONDS,
    currentDate: new Date(now()),
  }).catch((err: unknown) => {
    throw refusalOf(err)
  })
  return { ...claimsIn(payload, now()), keyId }
}

function keyIdOf(token: string): string {
  try {
    return readTokenHead(token, algorithms).kid
  } catch (err) {
    if (!(err instanceof TokenHeadError)) throw err
    throw new RefusedToken(err.reason === 'too long' ? 'size' : 'header', err)
  }
}

function claimsIn({ sub, exp, z_t, z_asid }: JWTPayload, now: number): Omit<AccessToken, 'keyId'> {
  if (z_t !== 'a' || typeof z_asid !== 'string' || typeof sub !== 'string' || !exp)
    throw new RefusedToken('claims')
  const expiresAtMs = exp * 1000
  // the tolerance is for clocks that are slow: tokens end in time
  if (expiresAtMs <= now) throw new RefusedToken('expired')
  return { apiSessionId: z_asid, identityId: sub, expiresAtMs }
}

/** The refusal, or the error itself, when it says nothing about the token. */
function refusalOf(err: unknown): unknown {
  if (err instanceof errors.JWTExpired) return new RefusedToken('expired', err)
  if (err instanceof errors.JWTClaimValidationFailed) return new RefusedToken('claims', err)
  if (err instanceof errors.JWSSignatureVerificationFailed) return new RefusedToken('signature', err)
  return err instanceof errors.JOSEError ? new RefusedToken('header', err) : err
}

/** The clients of OpenID Connect, for which access tokens are issued. They have no secrets. wire: SDKs use the first one. */
export const CLIENTS: ReadonlySet<string> = new Set(['native', 'openziti'])
