import { BlockList, isIP } from 'node:net'
import { type Element, textOf, uriName } from '@overlay/x509'
import { type Host, hostIn, hostOf, isLoopback, overlap } from './host.js'

/** The names that certificates of routers may have. */
export interface NameRules {
  readonly trustDomain: string
  /** The hosts under which clients and routers reach the product itself. */
  readonly own: readonly string[]
  readonly patterns: readonly string[]
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
 * The names of a router's certificate, out of those that it asks for. With a name of the product it could impersonate a
 * gateway. Names other than hosts are assigned by the network: each router gets its SPIFFE id. Loopback names stay
 * because stock routers ask for them.
 */
export function routerNames(requested: readonly Element[], rules: NameRules, router: Router): RouterNames {
  const own = rules.own.flatMap((host) => hostIn(host) ?? []).filter((host) => !isLoopback(host))
  const isAllowed = matcherOf(rules.patterns, router)
  const isGranted = (name: Element): boolean => {
    const host = hostOf(name)
    if (!host) return false
    return isLoopback(host) || (!own.some((one) => overlap(one, host)) && isAllowed(host))
  }
  return {
    granted: [
      ...requested.filter(isGranted),
      uriName(`spiffe://${rules.trustDomain}/router/${encodeURIComponent(router.id)}`),
    ],
    leftOut: requested.filter((name) => !isGranted(name)).map(textOf),
  }
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

/** Without patterns every name is allowed. No pattern allows a wildcard name. */
function matcherOf(patterns: readonly string[], router: Router): (host: Host) => boolean {
  if (patterns.length === 0) return () => true
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
    return !host.isWildcard && hosts.some((allowed) => overlap(allowed, host))
  }
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
