import type { KeyObject } from 'node:crypto'

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
export interface TokenHead {
  readonly algorithm: Algorithm
  readonly kid: string
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

const LONGEST_TOKEN = 16_384
const LONGEST_NAME = 1000
/** Members by which a token would bring its own key, and those that demand extensions. */
const unsafeMembers = ['jwk', 'jku', 'x5c', 'x5u', 'crit']
const compact = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/

/** Reads a compact JWS before any key is looked up. Throws TokenError unless its form and algorithm are allowed. */
export function headOf(token: string): TokenHead {
  if (token.length > LONGEST_TOKEN) throw malformed(`it is longer than ${LONGEST_TOKEN} characters`)
  const [, header = '', payload = ''] = compact.exec(token) ?? []
  if (payload === '') throw malformed('it is not a compact JWS')
  const { alg, kid, ...others } = objectIn(header, 'header')
  const unsafe = unsafeMembers.find((name) => Object.hasOwn(others, name))
  if (unsafe !== undefined) throw new TokenError('unsafe token', `its header has the member ${unsafe}`)
  const algorithm = algorithms.find((one) => one === alg)
  if (algorithm === undefined) throw new TokenError('unsafe token', 'its algorithm is not allowed')
  const { iss } = objectIn(payload, 'payload')
  if (!isName(kid)) throw malformed('kid is not a text')
  if (!isName(iss)) throw malformed('iss is not a text')
  return { algorithm, kid, issuer: iss }
}

const malformed = (message: string): TokenError => new TokenError('malformed token', message)

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function objectIn(part: string, what: string): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(Buffer.from(part, 'base64url')))
  } catch {
    throw malformed(`its ${what} is not JSON`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw malformed(`its ${what} is not an object`)
  return value as Record<string, unknown>
}

/** A text that a database can store, in reasonable length. */
export const isName = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= LONGEST_NAME && !/[\p{Cc}\p{Cs}]/u.test(value)

/** The identity that verified claims name. wire: only a member of the top level. */
export function subjectIn(claims: Readonly<Record<string, unknown>>, property: string): string {
  const value = Object.hasOwn(claims, property) ? claims[property] : undefined
  if (value === undefined) throw new TokenError('missing claim', `it has no claim ${property}`)
  if (!isName(value))
    throw new TokenError('missing claim', `its claim ${property} is not a text, or it is empty`)
  return value
}

const ofRsa: readonly Algorithm[] = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
const ofCurve: Readonly<Record<string, readonly Algorithm[]>> = {
  prime256v1: ['ES256'],
  secp384r1: ['ES384'],
  secp521r1: ['ES512'],
}

/** The algorithms that a key may verify, whatever the token says. */
export function algorithmsOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): readonly Algorithm[] {
  if (asymmetricKeyType === 'rsa') return ofRsa
  if (asymmetricKeyType === 'ec') return ofCurve[asymmetricKeyDetails?.namedCurve ?? ''] ?? []
  return asymmetricKeyType === 'ed25519' ? ['EdDSA', 'Ed25519'] : []
}
