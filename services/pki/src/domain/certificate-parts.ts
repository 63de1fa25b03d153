import type { X509Certificate } from 'node:crypto'
import { altNamesIn } from './alt-names.js'
import { contentOf, DerError, type Element, onlyElement, partsOf, tag } from './der.js'
import { extensionsIn, subjectKeyIdType } from './extensions.js'

/** What node:crypto does not tell of a certificate. */
export interface CertificateParts {
  /** DER of the Name. */
  readonly subject: Buffer
  readonly subjectKeyId: Buffer | undefined
  readonly altNames: readonly Element[]
}

export function partsOfCertificate({ raw }: X509Certificate): CertificateParts {
  const [toBeSigned] = partsOf(onlyElement(raw))
  // serial number, algorithm, issuer, validity, subject, key; the version before them may be absent
  const fields = partsOf(toBeSigned).filter((field) => field.tag !== 0xa0)
  const extensions = fields.filter((field) => field.tag === 0xa3).flatMap((field) => partsOf(field, 0xa3))
  const [keyId] = extensions.flatMap((list) => extensionsIn(list, subjectKeyIdType))
  const subject = fields[4]
  if (!subject) throw new DerError('certificate without a subject')
  return {
    subject: subject.whole,
    subjectKeyId: keyId && contentOf(keyId, tag.octetString),
    altNames: extensions.flatMap(altNamesIn),
  }
}
