import { createHash, type X509Certificate } from 'node:crypto'
import { DerError, derOf, type Element, objectIdIn, onlyElement, partsOf } from './der.js'
import { type Extension, extensionsIn } from './extension.js'

/** The parts of a certificate that node:crypto does not expose. */
export interface CertificateParts {
  /** DER of the Names. */
  readonly issuer: Buffer
  readonly subject: Buffer
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKey: Buffer
  readonly signature: Algorithm
  readonly extensions: readonly Extension[]
}

export interface Algorithm {
  readonly id: string
  readonly parameters: Element | undefined
}

/** Reads the DER of a certificate strictly. Throws DerError. */
export function partsOfCertificate({ raw }: Pick<X509Certificate, 'raw'>): CertificateParts {
  const [toBeSigned, signature] = partsOf(onlyElement(raw))
  // the version may be absent
  const [, , issuer, , subject, publicKey, ...optional] = partsOf(toBeSigned).filter(
    (part) => part.tag !== 0xa0,
  )
  if (!issuer || !subject || !publicKey) throw new DerError('certificate without subject, issuer or key')
  return {
    issuer: derOf(issuer),
    subject: derOf(subject),
    publicKey: derOf(publicKey),
    signature: algorithmIn(signature),
    extensions: optional
      .filter((part) => part.tag === 0xa3)
      .flatMap((part) => partsOf(part, 0xa3))
      .flatMap(extensionsIn),
  }
}

export function algorithmIn(element: Element | undefined): Algorithm {
  const [id, parameters] = partsOf(element)
  return { id: objectIdIn(id), parameters }
}

/** How the wire names a certificate: SHA-1 of its DER, lower-case hex. */
export const fingerprintOf = ({ raw }: Pick<X509Certificate, 'raw'>): string =>
  createHash('sha1').update(raw).digest('hex')

/** The same for the PEM of one certificate, which is not parsed. */
export const fingerprintOfPem = (pem: string): string =>
  fingerprintOf({ raw: Buffer.from(pem.replace(/-----[A-Z ]+-----/g, ''), 'base64') })
