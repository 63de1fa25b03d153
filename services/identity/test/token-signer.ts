import { randomUUID } from 'node:crypto'
import { newTokenKey, publishedKeys, signToken, type TestKey } from '@overlay/platform/tokens/testing'

/** What pki does with the keys of tokens. */
export interface TokenSigner {
  readonly key: TestKey
  /** Called before each signature. */
  before: () => Promise<unknown>
  signTokens(request: { readonly claims: readonly Uint8Array[] }): Promise<{ tokens: string[] }>
  getTokenKeys(): Promise<{ jwks: Buffer; keyIds: string[] }>
}

export function tokenSigner(): TokenSigner {
  const key = newTokenKey(randomUUID())
  return {
    key,
    before: async () => undefined,
    async signTokens({ claims }) {
      await this.before()
      return { tokens: claims.map((json) => signToken(key, JSON.parse(Buffer.from(json).toString()))) }
    },
    getTokenKeys: async () => publishedKeys([key]),
  }
}
