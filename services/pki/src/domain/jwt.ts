import { sign } from 'node:crypto'

export interface EnrollmentClaims {
  readonly issuer: string // 'https://host:port'
  readonly subject: string
  readonly token: string
  readonly method: string
  readonly expiresAt: Date
}

/** What a client redeems. It is verified with the certificate that the issuer's address presents. */
export function enrollmentJwt(
  { privateKey, keyId }: { readonly privateKey: string; readonly keyId: string },
  { issuer, subject, token, method, expiresAt }: EnrollmentClaims,
): string {
  const header = { alg: 'ES256', kid: keyId, typ: 'JWT' }
  const claims = {
    iss: issuer,
    sub: subject,
    aud: [''], // wire: one empty string
    exp: Math.floor(expiresAt.getTime() / 1000),
    jti: token,
    em: method,
    ctrls: null,
  }
  const input = [header, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const signature = sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}
