import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/** A key of tokens, as pki creates it. */
export interface TestKey {
  readonly id: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export function newTokenKey(id: string): TestKey {
  return { id, ...generateKeyPairSync('rsa', { modulusLength: 2048 }) }
}

/** The answer of GetTokenKeys. The document also contains `others`, which verify no tokens. */
export function publishedKeys(keys: readonly TestKey[], others: readonly TestKey[] = []) {
  const jwks = [...keys, ...others].map(({ id, publicKey }) => ({
    ...publicKey.export({ format: 'jwk' }),
    kid: id,
    use: 'sig',
    alg: 'RS256',
  }))
  return {
    jwks: Buffer.from(JSON.stringify({ keys: jwks })),
    keyIds: keys.map(({ id }) => id),
    sessionKeyIds: [],
  }
}

const encode = (part: unknown): string => Buffer.from(JSON.stringify(part)).toString('base64url')

/** Signs by RS256, whatever `header` says. Members of the header that are undefined are left out. */
export function signToken(
  { id, privateKey }: Omit<TestKey, 'publicKey'>,
  claims: unknown,
  header: object = {},
): string {
  const input = `${encode({ alg: 'RS256', typ: 'JWT', kid: id, ...header })}.${encode(claims)}`
  const signature = sign('sha256', Buffer.from(input), privateKey)
  return `${input}.${signature.toString('base64url')}`
}
