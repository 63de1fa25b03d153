import { X509Certificate } from 'node:crypto'

/** The host of an authority's SPIFFE id. */
export function trustDomainOf(pem: string): string {
  const names = new X509Certificate(pem).subjectAltName ?? ''
  const [, domain] = /(?:^|, )URI:spiffe:\/\/([^/,]+)/.exec(names) ?? []
  if (domain === undefined) throw new Error('authority names no trust domain')
  return domain
}
