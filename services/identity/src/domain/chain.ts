import type { X509Certificate } from 'node:crypto'
import { DerError, KeyError, pathLengthOf } from '@overlay/x509'
import { isSoundlySigned, isUsable, type Link, linkOf } from './link-rules.js'
import { type Budget, comparisonBudget, isWithinConstraints } from './name-constraints.js'

const mostPresented = 16
const longest = 8
const mostSignatures = 32

/**
 * The certificates from the client's leaf to a trusted one; undefined: there is no such chain.
 * Any trusted certificate ends a chain, self-signed or not. Each link must be sound, and usable for logins. The dates of
 * the leaf are checked by the auth policy, those of all other certificates here.
 */
export function chainOf(
  presented: readonly X509Certificate[],
  trusted: readonly X509Certificate[],
  now: Date,
): readonly X509Certificate[] | undefined {
  const [first, ...sent] = presented.slice(0, mostPresented)
  const leaf = first && soundLink(first, true)
  if (!leaf) return undefined
  let signatures = 0 // a limit for certificates that name each other in cycles
  const budget = comparisonBudget()

  const isSignedBy = (subject: X509Certificate, issuer: X509Certificate): boolean =>
    ++signatures <= mostSignatures && subject.verify(issuer.publicKey)

  const extend = (chain: readonly Link[]): readonly Link[] | undefined => {
    const last = chain.at(-1)
    if (!last || has(trusted, last.certificate)) return last && chain
    if (chain.length >= longest || !unlessUnsound(() => isSoundlySigned(last))) return undefined
    for (const issuer of [...trusted, ...sent]) {
      if (chain.some(({ certificate }) => certificate.raw.equals(issuer.raw))) continue
      if (!issuer.ca || !isWithin(issuer, now) || !last.certificate.checkIssued(issuer)) continue
      const link = soundLink(issuer, false) // before the signature: a key with a long exponent is slow
      if (!link || !mayCertify(link, chain, budget) || !isSignedBy(last.certificate, issuer)) continue
      const whole = extend([...chain, link])
      if (whole) return whole
    }
    return undefined
  }
  return extend([leaf])?.map(({ certificate }) => certificate)
}

const has = (list: readonly X509Certificate[], one: X509Certificate): boolean =>
  list.some(({ raw }) => raw.equals(one.raw))

/** A cache of the links of authorities, which many logins share. */
const authorities = new WeakMap<X509Certificate, Link | undefined>()

function soundLink(certificate: X509Certificate, isLeaf: boolean): Link | undefined {
  if (!isLeaf && authorities.has(certificate)) return authorities.get(certificate)
  const link = unlessUnsound(() => {
    const read = linkOf(certificate, isLeaf)
    return isUsable(read) ? read : undefined
  })
  if (!isLeaf) authorities.set(certificate, link)
  return link
}

const mayCertify = (authority: Link, below: readonly Link[], budget: Budget): boolean =>
  unlessUnsound(() => {
    const between = below.length - 1
    return (
      between <= (pathLengthOf(authority) ?? between) &&
      below.every((link) => isWithinConstraints(authority, link, budget))
    )
  }) === true

/** Undefined where a certificate is not valid DER or its key is weak. */
function unlessUnsound<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (err) {
    if (err instanceof DerError || err instanceof KeyError) return undefined
    throw err
  }
}

export const isWithin = (certificate: X509Certificate, now: Date): boolean =>
  hasBegun(certificate, now) && now <= new Date(certificate.validTo)

export const hasBegun = ({ validFrom }: X509Certificate, now: Date): boolean => now >= new Date(validFrom)
