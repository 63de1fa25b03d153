import type { KeyObject } from 'node:crypto'
import { isTokenText, readTokenHead, type TokenHead, TokenHeadError } from '@overlay/x509'

/** Why a token of another issuer is refused. For metrics and the log only. */
export type TokenReason =
  | 'malformed token'
  | 'unsafe token'
  | 'unknown signer'
  | 'unknown key'
  | 'keys not available'
  | 'wrong signature'
  | 'token expired'
  | 'token not valid yet'
  | 'token without expiry'
  | 'wrong audience'
  | 'missing claim'

/** A token that is refused. The message is for operators: it contains names, never values that the token carries. */
export class TokenError extends Error {
  override readonly name = 'TokenError'
  constructor(
    readonly reason: TokenReason,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/** What a token says about itself. Nothing of it is verified. */
export interface ExternalTokenHead extends Omit<TokenHead<Algorithm>, 'claims'> {
  readonly issuer: string
}

const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const
export type Algorithm = (typeof algorithms)[number]

/** Reads a token before any key is looked up. Throws TokenError unless its form and algorithm are allowed. */
export function headOf(token: string): ExternalTokenHead {
  const { claims, ...head } = checkedHead(token)
  if (!isTokenText(claims.iss)) throw new TokenError('malformed token', 'iss is not a text')
  return { ...head, issuer: claims.iss }
}

function checkedHead(token: string): TokenHead<Algorithm> {
  try {
    return readTokenHead(token, algorithms)
  } catch (err) {
    if (!(err instanceof TokenHeadError)) throw err
    throw new TokenError(err.reason === 'unsafe' ? 'unsafe token' : 'malformed token', err.message)
  }
}

/** The identity that verified claims name. wire: the claims property names a member of the top level, never a path. */
export function subjectIn(claims: Readonly<Record<string, unknown>>, property: string): string {
  const value = Object.hasOwn(claims, property) ? claims[property] : undefined
  if (value === undefined) throw new TokenError('missing claim', `it has no claim ${property}`)
  if (!isTokenText(value))
    throw new TokenError('missing claim', `its claim ${property} is not a text, or it is empty`)
  return value
}

const ofRsa: readonly Algorithm[] = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
const ofCurve: Readonly<Record<string, readonly Algorithm[]>> = {
  prime256v1: ['ES256'],
  secp384r1: ['ES384'],
  secp521r1: ['ES512'],
}

/** RFC 9864 gives EdDSA with this curve a name of its own. */
export const isSameAlgorithm = (one: string, other: string): boolean => nameOf(one) === nameOf(other)

const nameOf = (algorithm: string): string => (algorithm === 'Ed25519' ? 'EdDSA' : algorithm)

/** A key, and the only algorithm that its issuer allows for it. Undefined: any of its type. */
export interface TokenKey {
  readonly key: KeyObject
  readonly alg: string | undefined
}

/** The first key that may verify this algorithm. */
export const keyFor = (algorithm: Algorithm, keys: readonly TokenKey[]): KeyObject | undefined =>
  keys.find(
    ({ key, alg = algorithm }) => algorithmsOf(key).includes(algorithm) && isSameAlgorithm(alg, algorithm),
  )?.key

/** The algorithms that a key may verify, whatever the token says. */
export function algorithmsOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): readonly Algorithm[] {
  if (asymmetricKeyType === 'rsa') return ofRsa
  if (asymmetricKeyType === 'ec') return ofCurve[asymmetricKeyDetails?.namedCurve ?? ''] ?? []
  return asymmetricKeyType === 'ed25519' ? ['EdDSA', 'Ed25519'] : []
}
