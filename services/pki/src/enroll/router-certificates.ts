import { splitAddress } from '@overlay/platform/process'
import { forYears, issueLeaf, withCommonName } from '@overlay/x509'
import type { Logger } from 'pino'
import type { Csr } from '../domain/csr.js'
import { routerNames } from '../domain/router-names.js'
import type { Keyring } from '../keys/keyring.js'

/** The rules for the names in certificates of routers. */
export interface RouterNameRules {
  /** `host:port` each, under which the product is reached. */
  readonly addresses: readonly string[]
  readonly patterns: readonly string[]
  readonly log: Logger
}

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

/**
 * Issues both certificates of a router, usually for one key. Both have the router's id as their common name, whatever
 * the requests say: some TLS libraries take a common name for a host name.
 */
export async function issueRouterCertificates(
  { signer, trustDomain, server }: Pick<Keyring, 'signer' | 'trustDomain' | 'server'>,
  { addresses, patterns, log }: RouterNameRules,
  { routerId, name, ...requests }: RouterRequests,
): Promise<RouterLeaves> {
  const own = [...server.hosts, ...addresses.map((address) => splitAddress(address).host)]
  const validity = forYears(1, new Date())
  const issueFor = (role: 'client' | 'server'): Promise<string> => {
    const csr = requests[role]
    // differs: the original issues whatever names are asked for
    const { granted, leftOut } = routerNames(
      csr.altNames,
      { trustDomain, own, patterns },
      { id: routerId, name },
    )
    if (leftOut.length > 0)
      log.warn({ routerId, role, names: leftOut.slice(0, 20) }, 'names left out of a router certificate')
    const subject = withCommonName(csr.subject, routerId)
    return issueLeaf(signer, { ...csr, subject, altNames: granted, role, validity })
  }
  return { certPem: await issueFor('client'), serverCertPem: await issueFor('server') }
}
