import { type SigningKey, signJwt } from '../domain/jwt.js'
import type { Deps, PkiMethods } from './deps.js'

const MAX_TOKENS = 8
const MAX_BYTES = 65_536
const CLOCK_SKEW_MS = 60_000

/**
 * Signs with the active key of tokens. Callers are services: what they ask for is not checked, except that the token
 * expires while its key is still published.
 */
export const signTokens =
  ({ tokenKeyring, tokenKeyRules, now }: Deps): PkiMethods['signTokens'] =>
  async ({ claims }) => {
    if (claims.length > MAX_TOKENS) throw new Error(`more than ${MAX_TOKENS} tokens in one call`)
    const { active } = await tokenKeyring()
    const signer: SigningKey = { key: active.key, keyId: active.id }
    const latest = (now().getTime() + tokenKeyRules.tokenMs + CLOCK_SKEW_MS) / 1000
    return { tokens: await Promise.all(claims.map((json) => signJwt(signer, claimsIn(json, latest)))) }
  }

function claimsIn(json: Uint8Array, latest: number): object {
  if (json.length > MAX_BYTES) throw new Error(`claims of more than ${MAX_BYTES} bytes`)
  const claims: unknown = JSON.parse(Buffer.from(json).toString())
  const exp = typeof claims === 'object' && claims && 'exp' in claims ? claims.exp : undefined
  if (!claims || typeof exp !== 'number' || !(exp <= latest))
    throw new Error('claims without exp, or the token would outlive its key')
  return claims
}
