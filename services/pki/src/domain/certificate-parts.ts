import type { X509Certificate } from 'node:crypto'
import {
  contentOf,
  type Element,
  onlyElement,
  partsOfCertificate as readCertificate,
  tag,
} from '@overlay/x509'
import { altNamesIn } from './alt-names.js'
import { subjectKeyIdType } from './extensions.js'

export interface CertificateParts {
  /** DER of the Name. */
  readonly subject: Buffer
  readonly subjectKeyId: Buffer | undefined
  readonly altNames: readonly Element[]
}

/** The parts of a certificate that issuing or renewing another one takes from it. */
export function partsOfCertificate(certificate: X509Certificate): CertificateParts {
  const { subject, extensions } = readCertificate(certificate)
  const keyId = extensions.find(({ id }) => id === subjectKeyIdType)
  return {
    subject,
    subjectKeyId: keyId && contentOf(onlyElement(keyId.value), tag.octetString),
    altNames: altNamesIn(extensions),
  }
}
