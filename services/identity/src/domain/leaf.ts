import type { X509Certificate } from 'node:crypto'
import { fingerprintOf } from '@overlay/x509'

/** What a login stores and checks of the certificate of a client. */
export interface Leaf {
  readonly fingerprint: string
  readonly subject: string
  readonly pem: string
  readonly validFrom: Date
  readonly validTo: Date
}

export const leafOf = (certificate: X509Certificate): Leaf => ({
  fingerprint: fingerprintOf(certificate),
  subject: subjectTextOf(certificate),
  pem: certificate.toString(),
  validFrom: new Date(certificate.validFrom),
  validTo: new Date(certificate.validTo),
})

/**
 * wire: the subject in the format of RFC 2253: the last part first, a comma between parts, a plus within one. Node has
 * undefined for an empty subject.
 */
export const subjectTextOf = ({ subject }: X509Certificate): string =>
  (subject ?? '').replaceAll(' + ', '+').split('\n').reverse().join(',')
