import { createPublicKey, type KeyObject, verify, X509Certificate } from 'node:crypto'
import { ModelKeyFormat, ModelKeyUsage, type ModelPublicKey } from '@overlay/channel'
import type { ModelContents } from '../../packages/channel/testing/model-contents.js'

/** Claims of tokens that routers read. */
export interface Claims {
  readonly sub: string
  readonly aud: readonly string[] | string
  readonly jti: string
  readonly exp?: number
  readonly nbf?: number
  readonly iat: number
  /** `a` access, `s` session, `t` second factor. */
  readonly z_t: string
  readonly z_asid: string
  readonly z_cfs?: readonly string[] | null
  readonly z_st?: 'Dial' | 'Bind'
  readonly z_iid?: string
  readonly z_leg?: boolean
}

export const isSigned = (token: string): boolean => token.startsWith('ey')

/** Verifies a token with the keys of the model. Throws. */
export function claimsOf(token: string, type: Claims['z_t'], { 'public-keys': keys }: ModelContents): Claims {
  const [head = '', body = '', signature = ''] = token.split('.')
  const { kid, alg } = jsonOf(head) as { kid?: string; alg?: string }
  const key = keys.get(kid ?? '')
  if (!key?.usages.includes(ModelKeyUsage.TOKENS)) throw new Error(`public key not found: ${kid}`)
  const signed = Buffer.from(`${head}.${body}`)
  if (!isSignedBy(alg ?? '', signed, publicKeyOf(key), Buffer.from(signature, 'base64url')))
    throw new Error('invalid signature')
  const claims = jsonOf(body) as Claims
  const now = Date.now() / 1000
  if (claims.exp !== undefined && claims.exp <= now) throw new Error('token is expired')
  if (claims.nbf !== undefined && claims.nbf > now) throw new Error('token is not valid yet')
  if (claims.z_t !== type) throw new Error(`a token of type '${claims.z_t}' in place of '${type}'`)
  const audiences = [claims.aud].flat()
  if (type !== 's' && !audiences.includes('openziti') && !audiences.includes('native'))
    throw new Error(`invalid audience ${audiences}`)
  return claims
}

const jsonOf = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString())

const publicKeyOf = ({ data, format }: ModelPublicKey): KeyObject =>
  format === ModelKeyFormat.CERTIFICATE
    ? new X509Certificate(data).publicKey
    : createPublicKey({ key: data, format: 'der', type: 'spki' })

function isSignedBy(alg: string, data: Buffer, key: KeyObject, signature: Buffer): boolean {
  const hash = `sha${alg.slice(2)}`
  if (alg.startsWith('RS')) return key.asymmetricKeyType === 'rsa' && verify(hash, data, key, signature)
  if (!alg.startsWith('ES') || key.asymmetricKeyType !== 'ec') return false
  return verify(hash, data, { key, dsaEncoding: 'ieee-p1363' }, signature)
}

/** Whether a certificate leads to an authority of the model. Validity does not count, as at routers. */
export function leadsToAuthority(
  chain: readonly X509Certificate[],
  { 'public-keys': keys }: ModelContents,
): boolean {
  const roots = [...keys.values()].flatMap(({ usages, format, data }) =>
    usages.includes(ModelKeyUsage.CLIENT_CERTIFICATES) && format === ModelKeyFormat.CERTIFICATE
      ? [new X509Certificate(data)]
      : [],
  )
  const issues = (issuer: X509Certificate, of: X509Certificate): boolean =>
    of.checkIssued(issuer) && of.verify(issuer.publicKey)
  let [at] = chain
  for (let depth = 0; at && depth < 8; depth++) {
    const current = at
    if (roots.some((root) => root.raw.equals(current.raw) || issues(root, current))) return true
    at = chain.find((one) => !one.raw.equals(current.raw) && issues(one, current))
  }
  return false
}
