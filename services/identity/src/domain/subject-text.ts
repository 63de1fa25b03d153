import type { X509Certificate } from 'node:crypto'

/** wire: in the format of RFC 2253: the last part first, a comma between parts, a plus within one. Node has undefined for an empty subject. */
export const subjectTextOf = ({ subject }: X509Certificate): string =>
  (subject ?? '').replaceAll(' + ', '+').split('\n').reverse().join(',')
