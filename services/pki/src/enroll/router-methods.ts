import type { Names } from '@overlay/platform/kind-store'
import { splitAddress } from '@overlay/platform/process'
import { Fault } from '@overlay/rpc'
import type { Logger } from 'pino'
import { issueLeaf } from '../domain/certificate.js'
import type { Csr } from '../domain/csr.js'
import { subjectOf } from '../domain/enrollment.js'
import { routerNames } from '../domain/router-names.js'
import { fingerprintOf, forYears } from '../domain/signer.js'
import { withCommonName } from '../domain/subject.js'
import { csrOf, hashOf, type Method, type Owners } from './method.js'

const server = 'invalid server CSR'
const client = 'invalid client CSR'

/** What decides which names the certificates of routers have. */
export interface RouterNaming {
  /** `host:port` each, under which the product is reached. */
  readonly addresses: readonly string[]
  readonly patterns: readonly string[]
  readonly names: Names
  readonly log: Logger
}

interface Kind {
  readonly kind: 'edge-routers' | 'transit-routers'
  /** Whether the client's request must name the router. */
  readonly isNamed: boolean
}

/**
 * Two certificates, usually for one key. Both are for the router's id alone: a server's request is not asked for its
 * name, and some TLS libraries take a common name for that of a host.
 */
const routerMethod =
  ({ kind, isNamed }: Kind) =>
  ({ sessions }: Owners, naming: RouterNaming): Method =>
  async ({ csrPem, serverCsrPem }, enrollment, context) => {
    const routerId = subjectOf(enrollment)
    if (serverCsrPem === undefined) throw new Fault('MISSING_OR_INVALID_CSR', server)
    if (csrPem === undefined) throw new Fault('MISSING_OR_INVALID_CSR', client)
    const serverCsr = await csrOf(serverCsrPem, server)
    const clientCsr = await csrOf(csrPem, client)
    if (isNamed && clientCsr.commonName !== routerId) throw new Fault('COULD_NOT_PROCESS_CSR', client)
    const { patterns, log } = naming
    const name = patterns.some((pattern) => pattern.includes('[name]'))
      ? (await naming.names(kind, [routerId], context)).get(routerId)
      : undefined
    return {
      hash: hashOf(Buffer.concat([clientCsr.publicKey, serverCsr.publicKey])),
      async issue({ signer, intermediates, caPem, trustDomain, server: gateways }) {
        const own = [...gateways.hosts, ...naming.addresses.map((address) => splitAddress(address).host)]
        const validity = forYears(1, new Date())
        const issue = async (role: 'client' | 'server', csr: Csr): Promise<string> => {
          // differs: the original issues whatever names are asked for
          const rules = { trustDomain, own, patterns }
          const { granted, leftOut } = routerNames(csr.altNames, rules, { id: routerId, name })
          if (leftOut.length > 0)
            log.warn(
              { routerId, role, names: leftOut.slice(0, 20) },
              'names left out of a router certificate',
            )
          const subject = withCommonName(csr.subject, routerId)
          return issueLeaf(signer, { ...csr, subject, altNames: granted, role, validity })
        }
        const certPem = await issue('client', clientCsr)
        const serverCertPem = await issue('server', serverCsr)
        return {
          certPem,
          chainPem: certPem + intermediates,
          serverChainPem: serverCertPem + intermediates,
          caPem,
        }
      },
      async admit({ certPem }, context) {
        const fingerprint = fingerprintOf(certPem)
        const admitted = { routerId, enrollmentId: enrollment.id, certPem, fingerprint }
        const { position } = await sessions.admitRouter(admitted, context)
        return { isFirst: true, position }
      },
    }
  }

export const erott = routerMethod({ kind: 'edge-routers', isNamed: true })
export const trott = routerMethod({ kind: 'transit-routers', isNamed: false })
