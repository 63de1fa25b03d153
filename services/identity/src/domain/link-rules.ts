import type { X509Certificate } from 'node:crypto'
import {
  allowsPurpose,
  allowsUsage,
  type CertificateParts,
  extensionIds,
  partsOfCertificate,
  signatureSchemeOf,
} from '@overlay/x509'

/** Extensions that may be critical: those that the rules check, and those that have no effect on a login. */
const understood: ReadonlySet<string> = new Set([
  extensionIds.keyUsage,
  extensionIds.altNames,
  extensionIds.basicConstraints,
  extensionIds.nameConstraints,
  extensionIds.extendedKeyUsage,
  extensionIds.subjectKeyId,
  extensionIds.authorityKeyId,
  '2.5.29.18', // names of the issuer
  '2.5.29.31', // where revocations are
  '2.5.29.32', // policies
  '1.3.6.1.5.5.7.1.1', // where the issuer is
])

/** One certificate of a chain, decoded. */
export interface Link extends CertificateParts {
  readonly certificate: X509Certificate
  readonly isLeaf: boolean
}

/** Decodes what the rules need. Throws a DerError where the certificate is not sound. */
export const linkOf = (certificate: X509Certificate, isLeaf: boolean): Link => ({
  ...partsOfCertificate(certificate),
  certificate,
  isLeaf,
})

/** Whether the certificate allows the use of this link. What it does not restrict is allowed. */
export function isUsable(link: Link): boolean {
  const { extensions } = link
  const ids = extensions.map(({ id }) => id)
  return (
    new Set(ids).size === ids.length &&
    extensions.every(({ id, isCritical }) => !isCritical || understood.has(id)) &&
    // a leaf signs the handshake, an authority signs certificates
    allowsUsage(link, link.isLeaf ? 'digitalSignature' : 'keyCertSign') &&
    allowsPurpose(link, 'clientAuth')
  )
}

/** Signatures with MD5 and SHA-1 can be forged. */
export const isSoundlySigned = ({ signature }: Link): boolean => signatureSchemeOf(signature) !== undefined
