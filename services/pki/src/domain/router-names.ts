import { BlockList, isIP } from 'node:net'
import type { Element } from '@overlay/x509'
import { textOf, uriName } from './alt-names.js'
import { type Host, hostIn, hostOf, isLoopback, overlap } from './host.js'

/** Which names the certificates of routers may have. */
export interface NameRules {
  readonly trustDomain: string
  /** Under which clients and routers reach the product itself. */
  readonly own: readonly string[]
  readonly patterns: readonly string[]
}

export interface Router {
  readonly id: string
  readonly name: string | undefined
}

export interface RouterNames {
  readonly granted: readonly Element[]
  /** As text, for the log. */
  readonly leftOut: readonly string[]
}

/**
 * What a router asks for is not what it gets: a certificate with a name of the product would let it stand in for a
 * gateway. Names of other kinds than hosts are the network's to give: it gives each router its SPIFFE id.
 * Loopback names stay, because stock routers ask for them.
 */
export function routerNames(asked: readonly Element[], rules: NameRules, router: Router): RouterNames {
  const own = rules.own.flatMap((host) => hostIn(host) ?? []).filter((host) => !isLoopback(host))
  const isAllowed = matcherOf(rules.patterns, router)
  const isGranted = (name: Element): boolean => {
    const host = hostOf(name)
    if (!host) return false
    return isLoopback(host) || (!own.some((one) => overlap(one, host)) && isAllowed(host))
  }
  return {
    granted: [
      ...asked.filter(isGranted),
      uriName(`spiffe://${rules.trustDomain}/router/${encodeURIComponent(router.id)}`),
    ],
    leftOut: asked.filter((name) => !isGranted(name)).map(textOf),
  }
}

const placeholder = /\[(id|name)\]/g

/** Reads a list of patterns; an Error says which is none. */
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

/** No pattern at all allows every name. A wildcard is allowed by none. */
function matcherOf(patterns: readonly string[], router: Router): (host: Host) => boolean {
  if (patterns.length === 0) return () => true
  const subnets = new BlockList()
  const hosts: Host[] = []
  for (const pattern of patterns) {
    const subnet = subnetIn(pattern)
    if (subnet) subnets.addSubnet(subnet.address, subnet.bits, subnet.family)
    else hosts.push(...hostsOf(pattern, router))
  }
  return (host) => {
    const family = isIP(host.text)
    if (family !== 0) return subnets.check(host.text, family === 4 ? 'ipv4' : 'ipv6')
    return !host.isWildcard && hosts.some((allowed) => overlap(allowed, host))
  }
}

/** Nothing where the value of a placeholder is no part of a host name. */
function hostsOf(pattern: string, router: Router): readonly Host[] {
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
  const most = version === 4 ? 32 : 128
  const bits = size === undefined ? most : Number(size)
  if (size !== undefined && (!/^\d{1,3}$/.test(size) || bits > most)) return undefined
  return { address, bits, family: version === 4 ? ('ipv4' as const) : ('ipv6' as const) }
}
