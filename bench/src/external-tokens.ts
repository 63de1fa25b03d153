import 'reflect-metadata'
import { createPrivateKey, type KeyObject, randomUUID, sign, webcrypto } from 'node:crypto'
import { PemConverter, X509CertificateGenerator } from '@peculiar/x509'
import type { Api } from './api.js'

const audience = 'bench'
const lifetimeSeconds = 7200

/** Adds a signer of external tokens, and returns what signs tokens for the ids of identities. */
export async function externalSigner(admin: Api): Promise<(identityId: string) => string> {
  const { key, certPem } = await selfSigned()
  const kid = `bench-${randomUUID()}`
  const issuer = `https://bench.invalid/${kid}`
  const signer = { name: kid, certPem, kid, issuer, audience, enabled: true, claimsProperty: 'sub' }
  await admin.request('POST', '/external-jwt-signers', signer)
  const now = Math.floor(Date.now() / 1000)
  return (sub) =>
    signedToken(key, kid, { iss: issuer, aud: audience, sub, iat: now, exp: now + lifetimeSeconds })
}

async function selfSigned(): Promise<{ readonly key: KeyObject; readonly certPem: string }> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await X509CertificateGenerator.createSelfSigned(
    { name: 'CN=bench signer', keys, signingAlgorithm: algorithm },
    webcrypto,
  )
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)
  return {
    key: createPrivateKey(PemConverter.encode(pkcs8, 'PRIVATE KEY')),
    certPem: certificate.toString('pem'),
  }
}

function signedToken(key: KeyObject, kid: string, claims: object): string {
  const encoded = [{ alg: 'ES256', typ: 'JWT', kid }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  )
  const signature = sign('sha256', Buffer.from(encoded.join('.')), { key, dsaEncoding: 'ieee-p1363' })
  return [...encoded, signature.toString('base64url')].join('.')
}
