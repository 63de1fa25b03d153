import type { X509Certificate } from 'node:crypto'

/** wire: as RFC 2253 has it: the last part first, a comma between parts, a plus within one. Nobody's name is undefined there. */
export const subjectTextOf = ({ subject }: X509Certificate): string =>
  (subject ?? '').replaceAll(' + ', '+').split('\n').reverse().join(',')
