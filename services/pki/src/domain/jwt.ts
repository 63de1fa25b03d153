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
export const enrollmentJwt = (issuer: Issuer, of: Omit<Enrollment, 'jwt'>): Promise<string> =>
  signed(issuer, {
    iss: `https://${issuer.address}`,
    sub: subjectOf(of),
    aud: [''], // wire: one empty string
    exp: Math.floor(of.expiresAt.getTime() / 1000),
    jti: of.token,
    em: of.method,
    ctrls: null,
  })

/** Leads whoever has a certificate of the authority here; it is no secret and has no end. */
export const caJwt = (issuer: Issuer, caId: string): Promise<string> =>
  // wire: here the issuer ends in a slash
  signed(issuer, { iss: `https://${issuer.address}/`, sub: caId, jti: caId, em: 'ca', ctrls: null })

async function signed({ key, keyId }: Issuer, claims: object): Promise<string> {
  const alg = key.asymmetricKeyType === 'rsa' ? 'RS256' : 'ES256'
  const header = { alg, kid: keyId, typ: 'JWT' }
  const input = [header, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const signature = await signOnThread('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}

/** RSA takes about a millisecond. */
const signOnThread = promisify(sign)
