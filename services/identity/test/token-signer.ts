import { createHash, randomUUID } from 'node:crypto'
import { newTokenKey, publishedKeys, signToken, type TestKey } from '@overlay/process/tokens/testing'
import type { TokenKeys } from '@overlay/rpc'

/** What pki does with the keys of tokens. */
export interface TokenSigner {
  readonly key: TestKey
  /** Called before each signature. */
  before: () => Promise<unknown>
  signTokens(request: {
    readonly claims: readonly Uint8Array[]
    readonly addsHash: boolean
  }): Promise<{ tokens: string[] }>
  getTokenKeys(): Promise<TokenKeys>
}

export function tokenSigner(): TokenSigner {
  const key = newTokenKey(randomUUID())
  return {
    key,
    before: async () => undefined,
    async signTokens({ claims, addsHash }) {
      await this.before()
      const tokens: string[] = []
      for (const [at, json] of claims.entries()) {
        const [first] = addsHash && at === claims.length - 1 ? tokens : []
        const hash =
          first && createHash('sha256').update(first).digest().subarray(0, 16).toString('base64url')
        const added = hash ? { at_hash: hash } : {}
        tokens.push(signToken(key, { ...JSON.parse(Buffer.from(json).toString()), ...added }))
      }
      return { tokens }
    },
    getTokenKeys: async () => publishedKeys([key]),
  }
}
