import type { X509Certificate } from 'node:crypto'
import {
  contentOf,
  type Element,
  extensionIds,
  extensionOf,
  onlyElement,
  partsOfCertificate as readCertificate,
  tag,
} from '@overlay/x509'
import { altNamesIn } from './alt-names.js'

export interface CertificateParts {
  /** DER of the Name. */
  readonly subject: Buffer
  readonly subjectKeyId: Buffer | undefined
  readonly altNames: readonly Element[]
}

/** The parts of a certificate that another certificate takes from it. */
export function partsOfCertificate(certificate: X509Certificate): CertificateParts {
  const { subject, extensions } = readCertificate(certificate)
  const keyId = extensionOf(extensions, extensionIds.subjectKeyId)
  return {
    subject,
    subjectKeyId: keyId && contentOf(onlyElement(keyId), tag.octetString),
    altNames: altNamesIn(extensions),
  }
}
