import { createPublicKey } from 'node:crypto'
import { algorithmOf } from '../domain/sign-jwt.js'
import type { Deps, PkiMethods } from './deps.js'

/** The public keys of tokens, and that of the gateways, which signs enrollment tokens. */
export const getTokenKeys =
  ({ reachKeys, keyring, tokenKeyring }: Deps): PkiMethods['getTokenKeys'] =>
  async (_request, context) => {
    await reachKeys(context)
    const [{ server }, { jwks, ids }] = await Promise.all([keyring(), tokenKeyring()])
    const jwk = createPublicKey(server.key).export({ format: 'jwk' })
    const keys = [...jwks, { ...jwk, kid: server.keyId, use: 'sig', alg: algorithmOf(server.key) }]
    return { jwks: Buffer.from(JSON.stringify({ keys })), keyIds: [...ids] }
  }
