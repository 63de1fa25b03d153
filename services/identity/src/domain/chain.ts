import type { X509Certificate } from 'node:crypto'
import { DerError, KeyError, LONGEST_AUTHORITY_KEY, pathLengthOf, soundKey } from '@overlay/x509'
import { CHAIN_CERTIFICATES, CHAIN_SIGNATURES } from '../limits.js'
import { isSoundlySigned, isUsable, type Link, linkOf } from './link-rules.js'
import { type Budget, comparisonBudget, isWithinConstraints } from './name-constraints.js'

/** What a search for a chain has cost. Comparisons of names cost little. */
export interface ChainWork {
  signatures: number
}

/**
 * The certificates from the client's leaf to a trusted one; undefined: there is no such chain.
 * Any trusted certificate ends a chain, self-signed or not. Each link must be sound, and usable for logins. The dates of
 * the leaf are checked by the auth policy, those of all other certificates here.
 *
 * Chains are built downwards from the trusted certificates: a presented one is decoded, and its key is used, only after
 * the key of a trusted authority has verified its signature. What strangers make up costs comparisons of names.
 */
export function chainOf(
  presented: readonly X509Certificate[],
  trusted: readonly X509Certificate[],
  now: Date,
  work: ChainWork = { signatures: 0 },
): readonly X509Certificate[] | undefined {
  const [leaf, ...sent] = presented.slice(0, CHAIN_CERTIFICATES)
  if (!leaf) return undefined
  if (has(trusted, leaf)) return leafLink(leaf) && [leaf]
  const others = sent.filter((one) => !has(trusted, one))
  const budget = comparisonBudget()

  /** Names come first: they cost the least. */
  const isIssuedBy = (subject: X509Certificate, { certificate }: Link): boolean =>
    subject.checkIssued(certificate) &&
    ++work.signatures <= CHAIN_SIGNATURES &&
    subject.verify(certificate.publicKey)

  /** The paths one certificate longer than this one, from the new certificate to the trusted one. */
  const extended = (path: Path): readonly Path[] =>
    others.flatMap((one) => {
      if (path.some(({ certificate }) => certificate.raw.equals(one.raw))) return []
      if (!one.ca || !isWithin(one, now) || !isIssuedBy(one, path[0])) return []
      const link = authorityLink(one)
      return link && isSoundlySigned(link) && mayBeBelow(link, path, budget) ? [[link, ...path] as const] : []
    })

  // others are not decoded: there may be many
  const anchors = trusted.filter((one) => isNamed(one, presented) && one.ca && isWithin(one, now))
  let paths = anchors.flatMap((one): Path[] => {
    const link = authorityLink(one, LONGEST_AUTHORITY_KEY)
    return link ? [[link]] : []
  })
  for (let length = 2; length <= CHAIN_CERTIFICATES && paths.length > 0; length++) {
    for (const path of paths) {
      if (!isIssuedBy(leaf, path[0])) continue
      const link = leafLink(leaf)
      if (!link || !unlessUnsound(() => isSoundlySigned(link))) return undefined
      if (mayBeBelow(link, path, budget)) return [leaf, ...path.map(({ certificate }) => certificate)]
    }
    paths = paths.flatMap(extended)
  }
  return undefined
}

/** From an authority to a trusted one. */
type Path = readonly [Link, ...Link[]]

const has = (list: readonly X509Certificate[], one: X509Certificate): boolean =>
  list.some(({ raw }) => raw.equals(one.raw))

const isNamed = (authority: X509Certificate, presented: readonly X509Certificate[]): boolean =>
  presented.some((one) => one.checkIssued(authority))

/** A cache of the links of authorities, which many logins share. */
const authorities = new WeakMap<X509Certificate, Link | undefined>()

function authorityLink(certificate: X509Certificate, longestKey?: number): Link | undefined {
  if (authorities.has(certificate)) return authorities.get(certificate)
  const link = soundLink(certificate, false, longestKey)
  authorities.set(certificate, link)
  return link
}

const leafLink = (certificate: X509Certificate): Link | undefined => soundLink(certificate, true)

/** The strength of the key is checked last: it costs the most. */
const soundLink = (certificate: X509Certificate, isLeaf: boolean, longestKey?: number): Link | undefined =>
  unlessUnsound(() => {
    const link = linkOf(certificate, isLeaf)
    if (!isUsable(link)) return undefined
    soundKey(link.publicKey, longestKey)
    return link
  })

/** Whether all authorities of a path may certify this one. */
const mayBeBelow = (link: Link, path: Path, budget: Budget): boolean =>
  unlessUnsound(() =>
    path.every((authority, between) => {
      const authoritiesBelow = link.isLeaf ? between : between + 1
      return (
        authoritiesBelow <= (pathLengthOf(authority) ?? authoritiesBelow) &&
        isWithinConstraints(authority, link, budget)
      )
    }),
  ) === true

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
