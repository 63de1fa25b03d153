import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/** A key of tokens, as pki publishes it. */
export interface TestKey {
  readonly id: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export function newTokenKey(id: string): TestKey {
  return { id, ...generateKeyPairSync('rsa', { modulusLength: 2048 }) }
}

/** The answer of GetTokenKeys; `others` are in the document, but verify no tokens. */
export function publishedKeys(keys: readonly TestKey[], others: readonly TestKey[] = []) {
  const jwks = [...keys, ...others].map(({ id, publicKey }) => ({
    ...publicKey.export({ format: 'jwk' }),
    kid: id,
    use: 'sig',
    alg: 'RS256',
  }))
  return { jwks: Buffer.from(JSON.stringify({ keys: jwks })), keyIds: keys.map(({ id }) => id) }
}

export const ISSUER = 'https://localhost:1280/oidc'

/** Claims of a valid access token. */
export function accessClaims(now: number, more: object = {}): object {
  const seconds = Math.floor(now / 1000)
  return {
    iss: ISSUER,
    aud: ['native'],
    sub: 'i-alice',
    z_asid: 's-alice',
    z_t: 'a',
    iat: seconds,
    nbf: seconds,
    exp: seconds + 1800,
    ...more,
  }
}

const encode = (part: unknown): string => Buffer.from(JSON.stringify(part)).toString('base64url')

export function signToken({ id, privateKey }: TestKey, claims: unknown, header: object = {}): string {
  const input = `${encode({ alg: 'RS256', typ: 'JWT', kid: id, ...header })}.${encode(claims)}`
  const signature = sign('sha256', Buffer.from(input), privateKey)
  return `${input}.${signature.toString('base64url')}`
}
