import { BlockList, isIP } from 'node:net'
import {
  commonNamesOf,
  type Element,
  type Host,
  hostIn,
  hostOf,
  hostText,
  isLoopback,
  nameTags,
  overlap,
  textOf,
  withCommonName,
} from '@overlay/x509'

/** The names that certificates of routers may have. */
export interface NameRules {
  readonly trustDomain: string
  /** The hosts under which clients and routers reach the product itself. */
  readonly own: readonly string[]
  readonly patterns: readonly string[]
  /** Wildcards, and hosts of other routers, unless the router has them already. */
  readonly refused: ReadonlySet<string>
}

export interface Router {
  readonly id: string
  readonly name: string | undefined
}

export interface RouterNames {
  readonly granted: readonly Element[]
  /** Text for the log. */
  readonly leftOut: readonly string[]
}

/**
 * The names of a router's certificate, out of those that it requests. With a name of the product it could impersonate a
 * gateway, with a SPIFFE id of the network an API session. Loopback names stay because unmodified routers request them.
 */
export function routerNames(requested: readonly Element[], rules: NameRules, router: Router): RouterNames {
  const mayHave = hostRule(rules, router)
  const isGranted = (name: Element): boolean => isGrantedName(name, rules.trustDomain, router.id, mayHave)
  return {
    granted: requested.filter(isGranted),
    leftOut: requested.filter((name) => !isGranted(name)).map(textOf),
  }
}

/**
 * The hosts that certificates for these requests would have, and that no other router may have. Patterns that name a host
 * or the router, without a wildcard above them, allow it regardless of other holders.
 */
export function hostsToClaim(
  { altNames, subjects }: { readonly altNames: readonly Element[]; readonly subjects: readonly Buffer[] },
  rules: Omit<NameRules, 'refused'>,
  router: Router,
): ReadonlySet<string> {
  const hosts = new Set<string>()
  const mayHave = hostRule({ ...rules, refused: new Set() }, router)
  const isExplicit = explicitRule(rules.patterns, router)
  const claim = (host: Host): boolean => {
    if (!mayHave(host)) return false
    if (!isLoopback(host) && !isExplicit(host)) hosts.add(hostText(host))
    return true
  }
  for (const name of altNames) isGrantedName(name, rules.trustDomain, router.id, claim)
  for (const name of subjects.flatMap(commonNamesOf)) isGrantedCommonName(name, claim)
  return hosts
}

function isGrantedName(name: Element, trustDomain: string, routerId: string, mayHave: HostRule): boolean {
  if (name.tag === nameTags.email) return true
  if (name.tag === nameTags.uri) return isGrantedUri(textOf(name), trustDomain, routerId, mayHave)
  const host = hostOf(name)
  return host !== undefined && mayHave(host)
}

/** DER of the subject. The router's id replaces its common names if one of them is a host that the router may not have. */
export function serverSubject(subject: Buffer, rules: NameRules, router: Router): RouterSubject {
  const mayHave = hostRule(rules, router)
  const leftOut = commonNamesOf(subject).filter((name) => !isGrantedCommonName(name, mayHave))
  return { subject: leftOut.length === 0 ? subject : withCommonName(subject, router.id), leftOut }
}

export interface RouterSubject extends Pick<RouterNames, 'leftOut'> {
  readonly subject: Buffer
}

type HostRule = (host: Host) => boolean

function hostRule({ own, patterns, refused }: NameRules, router: Router): HostRule {
  const ownHosts = own.flatMap((host) => hostIn(host) ?? []).filter((host) => !isLoopback(host))
  const isAllowed = matcherOf(patterns, router)
  return (host) =>
    isLoopback(host) ||
    (!ownHosts.some((one) => overlap(one, host)) && isAllowed(host) && !refused.has(hostText(host)))
}

/** A URI counts as its host. In a SPIFFE id, that is a trust domain. */
function isGrantedUri(uri: string, trustDomain: string, routerId: string, mayHave: HostRule): boolean {
  if (/^urn:/i.test(uri)) return true
  const [, scheme = '', authority = ''] = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)/i.exec(uri) ?? []
  const host = hostIn(authority.replace(/:\d*$/, ''))
  if (!host || host.isWildcard) return false
  if (scheme.toLowerCase() !== 'spiffe') return mayHave(host)
  const isOwn = host.text === (hostIn(trustDomain)?.text ?? trustDomain)
  return !isOwn || uri === `spiffe://${trustDomain}/router/${encodeURIComponent(routerId)}`
}

/**
 * Some TLS libraries take a common name for a host name. Text with characters of addresses may pass for one, also with
 * others that an IDN library takes for dots or leaves out: Java maps them by rules of its own.
 */
function isGrantedCommonName(name: string, mayHave: HostRule): boolean {
  const host = hostIn(name.trim())
  return host ? mayHave(host) : !/[.:*\p{C}\u3002\p{DI}\u1806]/u.test(name.normalize('NFKC'))
}

const placeholder = /\[(id|name)\]/g

/** Parses a list of patterns. Throws where one is invalid. */
export function namePatternsIn(text: string): readonly string[] {
  const patterns = text
    .split(',')
    .map((pattern) => pattern.trim())
    .filter((pattern) => pattern !== '')
  for (const pattern of patterns)
    if (!subnetIn(pattern) && !hostIn(pattern.replaceAll(placeholder, 'x')))
      throw new Error(
        'must be a list of names like *.example.org or [name].example.org, addresses and subnets',
      )
  return patterns
}

/** Without patterns every name is allowed. Only one that names the router allows a wildcard name. */
function matcherOf(patterns: readonly string[], router: Router): HostRule {
  if (patterns.length === 0) return () => true
  const isExplicit = explicitRule(patterns, router)
  const subnets = new BlockList()
  const hosts: Host[] = []
  for (const pattern of patterns) {
    const subnet = subnetIn(pattern)
    if (subnet) subnets.addSubnet(subnet.address, subnet.bits, subnet.family)
    else hosts.push(...hostsOfPattern(pattern, router))
  }
  return (host) => {
    const family = isIP(host.text)
    if (family !== 0) return subnets.check(host.text, family === 4 ? 'ipv4' : 'ipv6')
    return isExplicit(host) || (!host.isWildcard && hosts.some((allowed) => overlap(allowed, host)))
  }
}

/** Whether a pattern stands for exactly this host: a host or an address, or one that names the router. */
function explicitRule(patterns: readonly string[], router: Router): HostRule {
  const explicit = new Set(
    patterns.flatMap((pattern) => {
      if (pattern.startsWith('*.') && pattern.search(placeholder) < 0) return []
      return hostsOfPattern(pattern, router).map(hostText)
    }),
  )
  return (host) => explicit.has(hostText(host))
}

/** Empty where the value of a placeholder is not a valid part of a host name. */
function hostsOfPattern(pattern: string, router: Router): readonly Host[] {
  const filled = pattern.replaceAll(placeholder, (_, which: 'id' | 'name') => {
    const value = router[which] ?? ''
    return /^[\w-]+$/.test(value) ? value : ' '
  })
  const host = hostIn(filled)
  return host ? [host] : []
}

function subnetIn(pattern: string) {
  const [address = '', size, ...more] = pattern.split('/')
  const version = isIP(address)
  if (version === 0 || more.length > 0) return undefined
  const maxBits = version === 4 ? 32 : 128
  const bits = size === undefined ? maxBits : Number(size)
  if (size !== undefined && (!/^\d{1,3}$/.test(size) || bits > maxBits)) return undefined
  return { address, bits, family: version === 4 ? ('ipv4' as const) : ('ipv6' as const) }
}
