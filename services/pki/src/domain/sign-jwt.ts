import type { KeyObject } from 'node:crypto'
import { signBytes } from '@overlay/x509'
import { type Enrollment, ownerIdOf } from './enrollment.js'

/** A private key and how tokens name it. */
export interface SigningKey {
  readonly key: KeyObject
  readonly keyId: string
}

/** The key that signs enrollment tokens, and the address that they lead to. */
export interface TokenSigner extends SigningKey {
  /** Advertised `host:port`: clients go there, and meet the certificate that verifies the token. */
  readonly address: string
}

/** What a client redeems. */
export const enrollmentJwt = (signer: TokenSigner, enrollment: Enrollment): Promise<string> =>
  signJwt(signer, {
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
  signJwt(signer, { iss: `https://${signer.address}/`, sub: caId, jti: caId, em: 'ca', ctrls: null })

/** A compact JWS: RS256 or ES256, by key. */
export async function signJwt({ key, keyId }: SigningKey, claims: object): Promise<string> {
  const header = { alg: algorithmOf(key), kid: keyId, typ: 'JWT' }
  const input = [header, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${input}.${await signText(key, input)}`
}

/** The name of the algorithm in JSON Web Signatures. */
export const algorithmOf = (key: KeyObject): 'RS256' | 'ES256' =>
  key.asymmetricKeyType === 'rsa' ? 'RS256' : 'ES256'

/** The signature of a JSON Web Signature, base64url. */
export async function signText(key: KeyObject, text: string): Promise<string> {
  const signature = await signBytes('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' })
  return signature.toString('base64url')
}
