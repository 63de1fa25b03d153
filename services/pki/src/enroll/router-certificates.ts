import { splitAddress } from '@overlay/process'
import { type Context, Fault, retryAfter } from '@overlay/rpc'
import { forYears, issueLeaf, withCommonName } from '@overlay/x509'
import type { Logger } from 'pino'
import type { Csr } from '../domain/csr.js'
import { hostsToClaim, routerNames, serverSubject } from '../domain/router-names.js'
import type { Keyring } from '../keys/keyring.js'
import { UPGRADE_SECONDS } from '../limits.js'
import type { Owners } from './enroll-method.js'

/** The rules for the names in certificates of routers, and the time from which they are valid. */
export interface RouterNameRules {
  /** `host:port` each, under which the product is reached. */
  readonly addresses: readonly string[]
  readonly patterns: readonly string[]
  readonly log: Logger
  now(): Date
}

/** Reserves hosts for a router. Returns those that it may not have. */
export type ClaimHosts = (
  routerId: string,
  hosts: readonly string[],
) => Promise<readonly { readonly host: string; readonly routerId: string }[]>

export interface RouterRequests {
  readonly routerId: string
  readonly name: string | undefined
  readonly client: Csr
  readonly server: Csr
}

/** The leaves. */
export interface RouterLeaves {
  readonly certPem: string
  readonly serverCertPem: string
}

type NamingKeys = Pick<Keyring, 'trustDomain' | 'server'>

const commonRules = ({ trustDomain, server }: NamingKeys, { addresses, patterns }: RouterNameRules) => ({
  trustDomain,
  own: [...server.hosts, ...addresses.map((address) => splitAddress(address).host)],
  patterns,
})

/** Reserves the hosts in both requests. Returns those that the router may not have. */
export async function reserveHosts(
  keys: NamingKeys,
  naming: RouterNameRules,
  { routerId, name, client, server }: RouterRequests,
  claimHosts: ClaimHosts,
): Promise<ReadonlySet<string>> {
  const asked = { altNames: [...client.altNames, ...server.altNames], subjects: [server.subject] }
  const hosts = hostsToClaim(asked, commonRules(keys, naming), { id: routerId, name })
  const refusals = await claimHosts(routerId, [...hosts])
  if (refusals.length > 0)
    naming.log.warn(
      { routerId, refusals: refusals.slice(0, 20) },
      'router may not have wildcards and hosts of other routers',
    )
  return new Set(refusals.map(({ host }) => host))
}

/**
 * Issues both certificates of a router, usually for one key. The client certificate has the router's id as its common
 * name, whatever the request says.
 * @param refused hosts that the router may not have
 */
export async function issueRouterCertificates(
  keys: NamingKeys & Pick<Keyring, 'signer'>,
  naming: RouterNameRules,
  { routerId, name, ...requests }: RouterRequests,
  refused: ReadonlySet<string>,
): Promise<RouterLeaves> {
  const { log, now } = naming
  const router = { id: routerId, name }
  const rules = { ...commonRules(keys, naming), refused }
  const validity = forYears(1, now())
  const issueFor = (role: 'client' | 'server'): Promise<string> => {
    const csr = requests[role]
    // differs: the original issues whatever names are requested
    const { granted, leftOut } = routerNames(csr.altNames, rules, router)
    const subject =
      role === 'client'
        ? { subject: withCommonName(csr.subject, routerId), leftOut: [] }
        : serverSubject(csr.subject, rules, router)
    const names = [...leftOut, ...subject.leftOut]
    if (names.length > 0)
      log.warn({ routerId, role, names: names.slice(0, 20) }, 'names left out of a router certificate')
    return issueLeaf(keys.signer, { ...csr, ...subject, altNames: granted, role, validity })
  }
  return { certPem: await issueFor('client'), serverCertPem: await issueFor('server') }
}

export const hostClaims =
  ({ claimRouterHosts }: Owners['sessions'], context: Context): ClaimHosts =>
  async (routerId, hosts) => {
    try {
      return (await claimRouterHosts({ routerId, hosts: [...hosts] }, context)).refused
    } catch (err) {
      if (!(err instanceof Fault && err.code === 'UNHANDLED')) throw err
      // a replica of the former release answers so, which does not differ from other failures: no name is given unchecked
      throw retryAfter(UPGRADE_SECONDS, 'UNAVAILABLE', 'sessions cannot check the names of the router', err)
    }
  }
