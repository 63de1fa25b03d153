import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { Fault } from '@overlay/rpc'
import { openSessionKeys } from '../src/tokens/session-keys.js'
import { openSessionTokens } from '../src/tokens/session-tokens.js'
import { log } from './store.js'

export interface TestKey {
  readonly id: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export const newKey = (id: string = randomUUID()): TestKey => ({
  id,
  ...generateKeyPairSync('ec', { namedCurve: 'P-256' }),
})

export const TOKEN_MS = 90 * 86_400_000

/** Pki: its keys of session tokens. Those of `others` verify access tokens. */
export function fakePki() {
  const state = { signing: newKey(), published: [] as TestKey[], others: [newKey()], isAway: false, asked: 0 }
  state.published = [state.signing]
  const asJwk = ({ id, publicKey }: TestKey) => ({
    ...publicKey.export({ format: 'jwk' }),
    ...{ kid: id, use: 'sig', alg: 'ES256' },
  })
  return {
    state,
    calls: {
      async getSessionKey() {
        state.asked++
        if (state.isAway) throw new Fault('UNAVAILABLE')
        const { id: keyId, privateKey } = state.signing
        const keyPem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
        return { keyId, keyPem, tokenMs: TOKEN_MS, issuer: 'https://api.example:1280' }
      },
      async getTokenKeys() {
        if (state.isAway) throw new Fault('UNAVAILABLE')
        const keys = [...state.others, ...state.published].map(asJwk)
        return {
          jwks: Buffer.from(JSON.stringify({ keys })),
          keyIds: state.others.map(({ id }) => id),
          sessionKeyIds: state.published.map(({ id }) => id),
        }
      },
    },
  }
}

/** Signs and verifies with the keys of a fake pki. */
export async function testTokens({ pki = fakePki(), now = Date.now } = {}) {
  const keys = await openSessionKeys({ pki: pki.calls, log })
  return {
    pki,
    keys,
    tokens: openSessionTokens({ keys, now }),
    [Symbol.asyncDispose]: keys[Symbol.asyncDispose],
  }
}
