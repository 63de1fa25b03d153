import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { promisify } from 'node:util'
import type { TokenRole } from '../domain/planned-key.js'
import type { NewTokenKey } from '../store/token-keys.js'

const newKeyPair = promisify(generateKeyPair)

/** PKCS#8, PEM. */
export const newAuthorityKey = async (): Promise<string> =>
  pkcs8Of(await newKeyPair('ec', { namedCurve: 'P-256' }))

/** PKCS#8, PEM. RSA, because enrollment tokens are signed with it: C SDKs before 0.32 verify no other signature. */
export const newServerKey = async (): Promise<string> =>
  pkcs8Of(await newKeyPair('rsa', { modulusLength: 2048 }))

const pkcs8Of = ({ privateKey }: { readonly privateKey: KeyObject }): string =>
  privateKey.export({ type: 'pkcs8', format: 'pem' }) as string

// wire: of OpenID Connect RSA, because the Go SDK 0.23 refuses id tokens with other signatures than RS256. P-256 signs in a
// tenth of the time, and a token of a session is signed while its client waits
export const newTokenKey = async (role: TokenRole): Promise<NewTokenKey> =>
  tokenKeyOf(await (role === 'token' ? newServerKey() : newAuthorityKey()))

/** @param privateKey RSA or P-256, PKCS#8, PEM */
export function tokenKeyOf(privateKey: string): NewTokenKey {
  const { crv, e, kty, n, x, y } = createPublicKey(createPrivateKey(privateKey)).export({ format: 'jwk' })
  const publicJwk = kty === 'RSA' ? { e, kty, n } : { crv, kty, x, y } // in the order of RFC 7638
  return {
    id: createHash('sha256').update(JSON.stringify(publicJwk)).digest('base64url'),
    publicJwk,
    privateKey,
  }
}

/** Authorities have different names: verifiers that find issuers by name never try the wrong key. */
export const newAuthorityName = (role: 'root' | 'signing'): string =>
  `overlay ${role} ${randomBytes(4).toString('hex')}`
