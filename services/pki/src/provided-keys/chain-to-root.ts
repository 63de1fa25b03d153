import type { X509Certificate } from 'node:crypto'
import { onOneLine } from '../domain/describe-key.js'
import { MAX_PATH } from '../limits.js'
import { ProvidedKeyError } from './read-key-files.js'

/** The subject of a certificate in one line. */
export const subjectOf = ({ subject }: X509Certificate): string => `'${onOneLine(subject)}'`

export const isSelfSigned = (certificate: X509Certificate): boolean => isIssuedBy(certificate, certificate)

export const expiryOf = ({ validTo }: X509Certificate): Date => new Date(validTo)

/**
 * The chain from a certificate to the root that signed itself, both included, with authorities from a list. Throws if
 * one is missing.
 */
export function chainToRoot(
  certificate: X509Certificate,
  authorities: readonly X509Certificate[],
  { where, now }: { readonly where: string; readonly now: Date },
): readonly X509Certificate[] {
  const chain = [certificate]
  for (let last = certificate; !isSelfSigned(last); chain.push(last)) {
    const issuers = authorities.filter(
      (authority) => !chain.includes(authority) && isIssuedBy(last, authority),
    )
    const issuer = issuers.find((one) => isCurrent(one, now)) ?? issuers[0]
    if (!issuer || chain.length === MAX_PATH)
      throw new ProvidedKeyError(
        where,
        `the chain ends at ${subjectOf(last)} and does not reach a root`,
        `add the certificate of '${onOneLine(last.issuer)}', and those above it up to the root`,
      )
    last = issuer
  }
  return chain
}

/** Without the rules for authorities, whose violations have messages of their own. */
const isIssuedBy = (certificate: X509Certificate, issuer: X509Certificate): boolean =>
  certificate.issuer === issuer.subject && certificate.verify(issuer.publicKey)

const isCurrent = ({ validFrom, validTo }: X509Certificate, now: Date): boolean =>
  new Date(validFrom) <= now && now < new Date(validTo)
