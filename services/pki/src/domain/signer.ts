import {
  createHash,
  createPrivateKey,
  createPublicKey,
  randomBytes,
  webcrypto,
  X509Certificate,
} from 'node:crypto'
import { pemOf } from './pem.js'
import * as x509 from './x509.js'

/** A certificate with its key. */
export interface Holder {
  readonly pem: string
  /** PKCS#8, PEM. */
  readonly privateKey: string
}

/** A holder that signs, ready to use. */
export interface Signer {
  readonly subject: x509.Name
  /** As its own certificate says it; computed anew it could differ, and OpenSSL compares. */
  readonly keyId: string
  readonly key: webcrypto.CryptoKey
}

export async function openSigner({ pem, privateKey }: Holder): Promise<Signer> {
  const certificate = new x509.X509Certificate(pem)
  const keyId = certificate.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId
  if (!keyId) throw new Error('signing certificate has no subject key identifier')
  return { subject: certificate.subjectName, keyId, key: await importKey(privateKey) }
}

/** What signs its own certificate. */
export async function selfSigner(subject: x509.Name, privateKey: string): Promise<Signer> {
  const { keyId } = await x509.SubjectKeyIdentifierExtension.create(publicKeyOf(privateKey))
  return { subject, keyId, key: await importKey(privateKey) }
}

const importKey = (privateKey: string): Promise<webcrypto.CryptoKey> =>
  webcrypto.subtle.importKey(
    'pkcs8',
    createPrivateKey(privateKey).export({ type: 'pkcs8', format: 'der' }),
    { name: 'ECDSA', namedCurve: 'P-256' },
    false,
    ['sign'],
  )

/** DER of the SubjectPublicKeyInfo. */
export const publicKeyOf = (privateKey: string): Buffer =>
  createPublicKey(privateKey).export({ type: 'spki', format: 'der' })

/** SHA-1 of the DER, lower-case hex: how the wire names certificates. */
export const fingerprintOf = (pem: string): string =>
  createHash('sha1').update(new X509Certificate(pem).raw).digest('hex')

/** Whatever its dates say. */
export function isIssuedBy(pem: string, issuerPem: string): boolean {
  const [certificate, issuer] = [new X509Certificate(pem), new X509Certificate(issuerPem)]
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
}

export const notBeforeOf = (pem: string): Date => new Date(new X509Certificate(pem).validFrom)
export const notAfterOf = (pem: string): Date => new Date(new X509Certificate(pem).validTo)

/** Host names and addresses that a certificate stands for, as they were asked for. */
export function hostsOf(pem: string): readonly string[] {
  const names =
    new x509.X509Certificate(pem).getExtension(x509.SubjectAlternativeNameExtension)?.names.items ?? []
  return names.filter(({ type }) => type === 'dns' || type === 'ip').map(({ value }) => value)
}

export interface Validity {
  readonly notBefore: Date
  readonly notAfter: Date
}

/** Begun a minute ago: clocks of clients may be late. */
export function forYears(years: number, now: Date): Validity {
  const notAfter = new Date(now)
  notAfter.setUTCFullYear(now.getUTCFullYear() + years)
  return { notBefore: new Date(now.getTime() - 60_000), notAfter }
}

export const forHours = (hours: number, now: Date): Validity => ({
  notBefore: now,
  notAfter: new Date(now.getTime() + hours * 3_600_000),
})

export interface Contents {
  readonly subject: x509.Name
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKey: Buffer
  readonly validity: Validity
  readonly extensions: readonly x509.Extension[]
}

/** Signs on a thread of the pool, not on the event loop. */
export async function sign(signer: Signer, contents: Contents): Promise<string> {
  const { subject, publicKey, validity, extensions } = contents
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: newSerialNumber(),
    subject,
    issuer: signer.subject,
    ...validity,
    publicKey,
    signingKey: signer.key,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    extensions: [...extensions, new x509.AuthorityKeyIdentifierExtension(signer.keyId)],
  })
  return pemOf(new Uint8Array(certificate.rawData))
}

/** differs: 128 bits, not 20. The first byte keeps it positive and without a leading zero. */
function newSerialNumber(): string {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return bytes.toString('hex')
}
