import { createHash, createPublicKey } from 'node:crypto'
import { boundedQueue } from '@overlay/process/async'
import { invalid, type Methods, type PkiServiceService } from '@overlay/rpc'
import { algorithmOf, type SigningKey, signJwt, signText } from '../domain/sign-jwt.js'
import { CHALLENGES_WAITING, CLAIMS_BYTES, CLOCK_SKEW_MS, MAX_TOKENS, SESSION_TOKEN_MS } from '../limits.js'
import type { MethodDeps } from './method-deps.js'

type TokenDeps = Pick<
  MethodDeps,
  'address' | 'keyring' | 'now' | 'reachKeys' | 'tokenKeyRules' | 'tokenKeyring'
>

/** The keys of tokens, and what they sign. */
export const tokenMethods = (deps: TokenDeps) => {
  const { address, keyring, now, reachKeys, tokenKeyRules, tokenKeyring } = deps
  // strangers may call it
  const challenges = boundedQueue({ name: 'challenges', running: 1, waiting: CHALLENGES_WAITING })
  return {
    /** Signs the nonce with the key of enrollment tokens. */
    async answerChallenge({ keyId, nonce }, { signal }) {
      const { server, caPem } = await keyring()
      if (keyId !== server.keyId)
        throw invalid('keyId', 'no key that signs enrollment tokens has this id', keyId)
      if (!uuid.test(nonce)) throw invalid('nonce', 'nonce must be a UUID', nonce)
      const signature = await challenges(() => signText(server.key, nonce), signal)
      return { algorithm: algorithmOf(server.key), signature, keyId, caPem }
    },

    /** The public keys of tokens of both roles, and that of the gateways, which signs enrollment tokens. */
    async getTokenKeys(_request, context) {
      await reachKeys(context)
      const [{ server }, { jwks, ids, sessionIds }] = await Promise.all([keyring(), tokenKeyring()])
      const jwk = createPublicKey(server.key).export({ format: 'jwk' })
      const keys = [...jwks, { ...jwk, kid: server.keyId, use: 'sig', alg: algorithmOf(server.key) }]
      return { jwks: Buffer.from(JSON.stringify({ keys })), keyIds: [...ids], sessionKeyIds: [...sessionIds] }
    },

    /** The key that signs tokens of sessions. sessions signs, because a call for each would double the cost of a create. */
    async getSessionKey(_request, context) {
      await reachKeys(context)
      const { id, privateKey } = (await tokenKeyring()).session
      return { keyId: id, keyPem: privateKey, tokenMs: SESSION_TOKEN_MS, issuer: `https://${address}` }
    },

    /**
     * Signs with the active key of tokens. Callers are services: what they ask for is not checked, except that the token
     * expires while its key is still published.
     */
    async signTokens({ claims, addsHash }) {
      if (claims.length > MAX_TOKENS) throw new Error(`more than ${MAX_TOKENS} tokens in one call`)
      const { active } = await tokenKeyring()
      const signer: SigningKey = { key: active.key, keyId: active.id }
      const latest = (now().getTime() + tokenKeyRules.tokenMs + CLOCK_SKEW_MS) / 1000
      const [first, ...others] = claims.map((json) => claimsIn(json, latest))
      if (!first) return { tokens: [] }
      const last = addsHash ? others.pop() : undefined
      const signed = signJwt(signer, first)
      const withHash = async (claims: object) =>
        signJwt(signer, { ...claims, at_hash: leftHalfOfHash(await signed) })
      const all = [signed, ...others.map((one) => signJwt(signer, one)), ...(last ? [withHash(last)] : [])]
      return { tokens: await Promise.all(all) }
    },
  } satisfies Partial<Methods<PkiServiceService>>
}

/** No other text is signed: clients choose it, and the key also signs tokens and handshakes. */
const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** Of algorithms with SHA-256. */
const leftHalfOfHash = (token: string): string =>
  createHash('sha256').update(token).digest().subarray(0, 16).toString('base64url')

function claimsIn(json: Uint8Array, latest: number): object {
  if (json.length > CLAIMS_BYTES) throw new Error(`claims of more than ${CLAIMS_BYTES} bytes`)
  const claims: unknown = JSON.parse(Buffer.from(json).toString())
  const exp = typeof claims === 'object' && claims && 'exp' in claims ? claims.exp : undefined
  if (!claims || typeof exp !== 'number' || !(exp <= latest))
    throw new Error('claims without exp, or the token would outlive its key')
  return claims
}
