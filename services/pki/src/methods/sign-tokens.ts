import { createHash } from 'node:crypto'
import { type SigningKey, signJwt } from '../domain/sign-jwt.js'
import { CLAIMS_BYTES, CLOCK_SKEW_MS, MAX_TOKENS } from '../limits.js'
import type { Deps, PkiMethods } from './deps.js'

/**
 * Signs with the active key of tokens. Callers are services: what they ask for is not checked, except that the token
 * expires while its key is still published.
 */
export const signTokens =
  ({ tokenKeyring, tokenKeyRules, now }: Deps): PkiMethods['signTokens'] =>
  async ({ claims, addsHash }) => {
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
  }

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
