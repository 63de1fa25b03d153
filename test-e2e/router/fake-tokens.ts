import { generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { ModelEvent, ModelKeyFormat, ModelKeyUsage } from '@overlay/channel'
import type { Claims } from './tokens.js'

/** A key that signs tokens for tests without a product. */
export interface FakeTokens {
  /** Adds the key to a model. */
  readonly keyEvent: ModelEvent
  sign(claims: Partial<Claims>): string
}

export function fakeTokens(kid = 'tokens'): FakeTokens {
  const { privateKey: key, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  return {
    keyEvent: ModelEvent.fromPartial({
      publicKey: {
        kid,
        data: publicKey.export({ format: 'der', type: 'spki' }),
        usages: [ModelKeyUsage.TOKENS],
        format: ModelKeyFormat.PUBLIC_KEY,
      },
    }),
    sign(claims) {
      const iat = Math.floor(Date.now() / 1000)
      const all = { aud: ['openziti'], jti: randomUUID(), iat, exp: iat + 60, ...claims }
      const signed = `${part({ alg: 'ES256', kid })}.${part(all)}`
      const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
      return `${signed}.${signature.toString('base64url')}`
    },
  }
}
