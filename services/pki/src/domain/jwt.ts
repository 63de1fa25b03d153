import { type KeyObject, sign } from 'node:crypto'
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
export function enrollmentJwt({ address, key, keyId }: Issuer, of: Omit<Enrollment, 'jwt'>): string {
  const header = { alg: 'ES256', kid: keyId, typ: 'JWT' }
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
  const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}
