import type { KeyObject } from 'node:crypto'
import { errors, type JWTHeaderParameters, type JWTPayload, jwtVerify } from 'jose'

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

const MAX_CHARACTERS = 16_384
const CLOCK_SKEW_SECONDS = 60
const MAX_KEY_ID_CHARACTERS = 100
const audience = ['native', 'openziti']
/** Members that name or contain keys, or that change how the token is to be read. */
const refusedMembers = ['jku', 'jwk', 'x5u', 'x5c', 'x5t', 'x5t#S256', 'crit', 'b64', 'enc', 'zip']

/**
 * Verifies an access token. Nothing is looked up for a token that is too large, has another algorithm than RS256 or
 * refers to keys other than those published. Throws a RefusedToken.
 */
export async function verifyAccessToken(
  token: string,
  { issuer, keyOf, now }: AccessTokenOptions,
): Promise<AccessToken> {
  if (token.length > MAX_CHARACTERS) throw new RefusedToken('size')
  let keyId = ''
  const findKey = async (header: JWTHeaderParameters): Promise<KeyObject> => {
    keyId = keyIdOf(header)
    const key = await keyOf(keyId)
    if (!key) throw new RefusedToken('key')
    return key
  }
  const { payload } = await jwtVerify(token, findKey, {
    algorithms: ['RS256'],
    typ: 'JWT',
    issuer,
    audience,
    requiredClaims: ['exp', 'nbf', 'sub'],
    clockTolerance: CLOCK_SKEW_SECONDS,
    currentDate: new Date(now()),
  }).catch((err: unknown) => {
    throw refusalOf(err)
  })
  return { ...claimsIn(payload, now()), keyId }
}

function keyIdOf(header: JWTHeaderParameters): string {
  const { kid } = header
  if (refusedMembers.some((member) => Object.hasOwn(header, member))) throw new RefusedToken('header')
  if (typeof kid !== 'string' || kid.length > MAX_KEY_ID_CHARACTERS) throw new RefusedToken('header')
  return kid
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
