import { createHash, type X509Certificate } from 'node:crypto'
import { pathLengthOf } from './path-length.js'

const mostPresented = 16
const longest = 8
const mostSignatures = 32

/**
 * The certificates from the client's leaf to one that is trusted, or nothing.
 * Any trusted certificate ends a chain, self-signed or not. The dates of the leaf are the auth policy's affair;
 * those of all others count here. What a certificate may be used for is not looked at.
 */
export function chainOf(
  presented: readonly X509Certificate[],
  trusted: readonly X509Certificate[],
  now: Date,
): readonly X509Certificate[] | undefined {
  const [leaf, ...sent] = presented.slice(0, mostPresented)
  if (!leaf) return undefined
  let signatures = 0 // certificates that name each other in circles must not cost more than a few

  const issuedBy = (subject: X509Certificate, issuer: X509Certificate): boolean =>
    subject.checkIssued(issuer) && ++signatures <= mostSignatures && subject.verify(issuer.publicKey)

  const extend = (chain: readonly X509Certificate[]): readonly X509Certificate[] | undefined => {
    const last = chain.at(-1)
    if (!last || has(trusted, last)) return last && chain
    if (chain.length >= longest) return undefined
    const between = chain.length - 1
    for (const issuer of [...trusted, ...sent]) {
      if (has(chain, issuer) || !mayIssue(issuer, between, now) || !issuedBy(last, issuer)) continue
      const whole = extend([...chain, issuer])
      if (whole) return whole
    }
    return undefined
  }
  return extend([leaf])
}

const has = (list: readonly X509Certificate[], one: X509Certificate): boolean =>
  list.some(({ raw }) => raw.equals(one.raw))

function mayIssue(authority: X509Certificate, between: number, now: Date): boolean {
  return authority.ca && isWithin(authority, now) && between <= (pathLengthOf(authority.raw) ?? between)
}

export const isWithin = (certificate: X509Certificate, now: Date): boolean =>
  hasBegun(certificate, now) && now <= new Date(certificate.validTo)

const clientAuth = ['1.3.6.1.5.5.7.3.2', '2.5.29.37.0'] // or anything

/** Whoever does not say what a certificate is for means everything. */
export const isForClients = ({ keyUsage }: X509Certificate): boolean =>
  keyUsage === undefined || clientAuth.some((purpose) => keyUsage.includes(purpose))

export const hasBegun = ({ validFrom }: X509Certificate, now: Date): boolean => now >= new Date(validFrom)

/** wire: SHA-1 over the DER, lower case, without colons. */
export const fingerprintOf = ({ fingerprint }: X509Certificate): string =>
  fingerprint.replaceAll(':', '').toLowerCase()

/** The same of a certificate that pki has just made: what is known to be one is not parsed. */
export const fingerprintOfPem = (pem: string): string =>
  createHash('sha1')
    .update(Buffer.from(pem.replace(/-----[A-Z ]+-----/g, ''), 'base64'))
    .digest('hex')
