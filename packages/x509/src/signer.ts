import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  randomBytes,
  X509Certificate,
} from 'node:crypto'
import { altNamesIn, isHost, textOf } from './alt-names.js'
import { partsOfCertificate } from './certificate.js'
import {
  bits,
  bytesOfBits,
  contentOf,
  derOf,
  type Element,
  encode,
  objectId,
  onlyElement,
  partsOf,
  sequence,
  tag,
  time,
} from './der.js'
import { extensionIds, extensionOf } from './extension.js'
import { authorityKeyId } from './issued-extensions.js'
import { pemOf } from './pem.js'
import { signBytes } from './sign-bytes.js'
import { signatureSchemeOf } from './signature.js'

/** A certificate with its private key. */
export interface CertifiedKey {
  readonly pem: string
  /** PKCS#8, PEM. */
  readonly privateKey: string
}

/** Signs certificates. */
export interface Signer {
  /** DER of its Name. */
  readonly subject: Buffer
  /** The key identifier of its own certificate: a computed one could differ, and OpenSSL compares. */
  readonly keyId: Buffer
  readonly key: KeyObject
  /** The end of its own certificate, which no certificate that it signs outlives. Absent: it signs its own. */
  readonly notAfter?: Date
}

export function openSigner({ pem, privateKey }: CertifiedKey): Signer {
  const { subject, extensions } = partsOfCertificate(new X509Certificate(pem))
  const subjectKeyId = extensionOf(extensions, extensionIds.subjectKeyId)
  if (!subjectKeyId) throw new Error('signing certificate has no subject key identifier')
  const keyId = contentOf(onlyElement(subjectKeyId), tag.octetString)
  return { subject, keyId, key: createPrivateKey(privateKey), notAfter: notAfterOf(pem) }
}

/** DER of the SubjectPublicKeyInfo. */
export const publicKeyOf = (privateKey: string): Buffer =>
  createPublicKey(privateKey).export({ type: 'spki', format: 'der' })

/** SHA-1 of the key's bits, without its algorithm. */
export function keyIdOf(publicKey: Buffer): Buffer {
  const [, key] = partsOf(onlyElement(publicKey))
  return createHash('sha1').update(bytesOfBits(key)).digest()
}

/** Ignores the dates. */
export const isIssuedBy = (pem: string, issuerPem: string): boolean =>
  hasIssued(new X509Certificate(issuerPem), new X509Certificate(pem))

export const hasIssued = (issuer: X509Certificate, certificate: X509Certificate): boolean =>
  certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)

export const notBeforeOf = (pem: string): Date => new Date(new X509Certificate(pem).validFrom)
export const notAfterOf = (pem: string): Date => new Date(new X509Certificate(pem).validTo)

/** Host names and addresses that a certificate stands for, in their spelling. */
export const hostsOf = (pem: string): readonly string[] =>
  altNamesIn(partsOfCertificate(new X509Certificate(pem)).extensions)
    .filter(isHost)
    .map(textOf)

/** The host of the certificate's SPIFFE id. Undefined: it has none. */
export function trustDomainOf(pem: string): string | undefined {
  const names = new X509Certificate(pem).subjectAltName ?? ''
  return /(?:^|, )URI:spiffe:\/\/([^/,]+)/.exec(names)?.[1]
}

export interface Validity {
  readonly notBefore: Date
  readonly notAfter: Date
}

/** When a certificate begins that is issued now: a minute ago, because clocks of verifiers may be slow. */
export const beginOf = (now: Date): Date => new Date(now.getTime() - 60_000)

export function forYears(years: number, now: Date): Validity {
  const notAfter = new Date(now)
  notAfter.setUTCFullYear(now.getUTCFullYear() + years)
  return { notBefore: beginOf(now), notAfter }
}

export const forHours = (hours: number, now: Date): Validity => ({
  notBefore: now,
  notAfter: new Date(now.getTime() + hours * 3_600_000),
})

export interface Contents {
  /** DER of the Name. */
  readonly subject: Buffer
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKey: Buffer
  readonly validity: Validity
  readonly extensions: readonly Element[]
}

const version3 = encode(0xa0, encode(tag.integer, Buffer.from([2])))

/** How an authority signs, by the curve of its key, or its kind. */
const signatureIds: Readonly<Record<string, string>> = {
  rsa: '1.2.840.113549.1.1.11',
  prime256v1: '1.2.840.10045.4.3.2',
  secp384r1: '1.2.840.10045.4.3.3',
  secp521r1: '1.2.840.10045.4.3.4',
  ed25519: '1.3.101.112',
}

function signatureOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject) {
  const id = signatureIds[asymmetricKeyDetails?.namedCurve ?? asymmetricKeyType ?? '']
  const scheme = id === undefined ? undefined : signatureSchemeOf({ id, parameters: undefined })
  if (id === undefined || !scheme)
    throw new Error('an authority must have an RSA, P-256, P-384, P-521 or Ed25519 key')
  const parameters = asymmetricKeyType === 'rsa' ? [encode(tag.null)] : []
  return { algorithm: sequence(objectId(id), ...parameters), digest: scheme.digest }
}

/** PEM of a certificate. */
export async function signCertificate(signer: Signer, contents: Contents): Promise<string> {
  const { subject, publicKey, extensions } = contents
  const validity = within(contents.validity, signer.notAfter)
  const { algorithm, digest } = signatureOf(signer.key)
  const toBeSigned = sequence(
    version3,
    encode(tag.integer, newSerialNumber()),
    algorithm,
    signer.subject,
    sequence(time(validity.notBefore), time(validity.notAfter)),
    subject,
    publicKey,
    encode(0xa3, sequence(...extensions, authorityKeyId(signer.keyId))),
  )
  const signature = await signBytes(digest, derOf(toBeSigned), { key: signer.key })
  return pemOf(derOf(sequence(toBeSigned, algorithm, bits(signature))))
}

function within({ notBefore, notAfter }: Validity, end = notAfter): Validity {
  if (end <= notBefore) throw new Error(`the authority has expired: ${end.toISOString()}`)
  return { notBefore, notAfter: end < notAfter ? end : notAfter } // differs: the original lets leaves outlive it
}

/** differs: 128 bits, not 20. The first byte keeps it positive and without a leading zero. */
function newSerialNumber(): Buffer {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return bytes
}
