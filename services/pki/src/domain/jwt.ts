import { type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { type Enrollment, ownerIdOf } from './enrollment.js'

/** The key that signs tokens, and the address that they lead to. */
export interface TokenSigner {
  /** Advertised `host:port`: clients go there, and meet the certificate that verifies the token. */
  readonly address: string
  readonly key: KeyObject
  /** How the wire names that certificate. */
  readonly keyId: string
}

/** What a client redeems. */
export const enrollmentJwt = (signer: TokenSigner, enrollment: Omit<Enrollment, 'jwt'>): Promise<string> =>
  jwtOf(signer, {
    iss: `https://${signer.address}`,
    sub: ownerIdOf(enrollment),
    aud: [''], // wire: one empty string
    exp: Math.floor(enrollment.expiresAt.getTime() / 1000),
    jti: enrollment.token,
    em: enrollment.method,
    ctrls: null,
  })

/** Leads clients with a certificate of the authority to this network. It is no secret and does not expire. */
export const caJwt = (signer: TokenSigner, caId: string): Promise<string> =>
  // wire: here the issuer ends in a slash
  jwtOf(signer, { iss: `https://${signer.address}/`, sub: caId, jti: caId, em: 'ca', ctrls: null })

async function jwtOf({ key, keyId }: TokenSigner, claims: object): Promise<string> {
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
