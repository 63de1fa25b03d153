import { generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'

/** What pki does with the keys of tokens. */
export interface TokenSigner {
  readonly keyId: string
  readonly key: KeyObject
  /** Called before each signature. */
  before: () => Promise<unknown>
  signTokens(request: { readonly claims: readonly Uint8Array[] }): Promise<{ tokens: string[] }>
  getTokenKeys(): Promise<{ jwks: Buffer; keyIds: string[] }>
}

export function tokenSigner(): TokenSigner {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const keyId = randomUUID()
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: keyId, use: 'sig', alg: 'RS256' }
  return {
    keyId,
    key: privateKey,
    before: async () => undefined,
    async signTokens({ claims }) {
      await this.before()
      const header = { alg: 'RS256', kid: keyId, typ: 'JWT' }
      return {
        tokens: claims.map((json) => jwsOf(header, JSON.parse(Buffer.from(json).toString()), privateKey)),
      }
    },
    getTokenKeys: async () => ({ jwks: Buffer.from(JSON.stringify({ keys: [jwk] })), keyIds: [keyId] }),
  }
}

/** A compact JWS with any header. */
export function jwsOf(header: object, claims: object, key: KeyObject): string {
  const input = [header, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const signature = sign('sha256', Buffer.from(input), key)
  return `${input}.${signature.toString('base64url')}`
}
