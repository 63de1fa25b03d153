import { type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { type Enrollment, subjectOf } from './enrollment.js'

/** How tokens are signed, and where they lead. */
export interface Issuer {
  /** Advertised `host:port`: clients go there, and meet the certificate that verifies the token. */
  readonly address: string
  readonly key: KeyObject
  /** How the wire names that certificate. */
  readonly keyId: string
}

/** What a client redeems. */
export async function enrollmentJwt(
  { address, key, keyId }: Issuer,
  of: Omit<Enrollment, 'jwt'>,
): Promise<string> {
  const alg = key.asymmetricKeyType === 'rsa' ? 'RS256' : 'ES256'
  const header = { alg, kid: keyId, typ: 'JWT' }
  const claims = {
    iss: `https://${address}`,
    sub: subjectOf(of),
    aud: [''], // wire: one empty string
    exp: Math.floor(of.expiresAt.getTime() / 1000),
    jti: of.token,
    em: of.method,
    ctrls: null,
  }
  const input = [header, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const signature = await signOnThread('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}

/** RSA takes about a millisecond. */
const signOnThread = promisify(sign)
