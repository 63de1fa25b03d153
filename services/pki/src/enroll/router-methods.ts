import type { Names } from '@overlay/platform/kind-store'
import { splitAddress } from '@overlay/platform/process'
import { Fault } from '@overlay/rpc'
import { fingerprintOfPem } from '@overlay/x509'
import type { Logger } from 'pino'
import { issueLeaf } from '../domain/certificate.js'
import type { Csr } from '../domain/csr.js'
import { ownerIdOf } from '../domain/enrollment.js'
import { routerNames } from '../domain/router-names.js'
import { forYears } from '../domain/signer.js'
import { withCommonName } from '../domain/subject.js'
import { parseCsr } from './csr.js'
import { type EnrollMethod, hashOf, type Owners } from './method.js'

const invalidServer = 'invalid server CSR'
const invalidClient = 'invalid client CSR'

/** Decides which names the certificates of routers have. */
export interface RouterNaming {
  /** `host:port` each, under which the product is reached. */
  readonly addresses: readonly string[]
  readonly patterns: readonly string[]
  readonly names: Names
  readonly log: Logger
}

interface RouterKind {
  readonly kind: 'edge-routers' | 'transit-routers'
  /** Whether the client's request must name the router. */
  readonly isNamed: boolean
}

/**
 * Two certificates, usually for one key. Both have the router's id as their common name, whatever the requests say:
 * some TLS libraries take a common name for a host name.
 */
const routerMethod =
  ({ kind, isNamed }: RouterKind) =>
  ({ sessions }: Owners, { addresses, patterns, names, log }: RouterNaming): EnrollMethod =>
  async ({ csrPem, serverCsrPem }, enrollment, context) => {
    const routerId = ownerIdOf(enrollment)
    if (serverCsrPem === undefined) throw new Fault('MISSING_OR_INVALID_CSR', invalidServer)
    if (csrPem === undefined) throw new Fault('MISSING_OR_INVALID_CSR', invalidClient)
    const serverCsr = await parseCsr(serverCsrPem, invalidServer)
    const clientCsr = await parseCsr(csrPem, invalidClient)
    if (isNamed && clientCsr.commonName !== routerId) throw new Fault('COULD_NOT_PROCESS_CSR', invalidClient)
    const name = patterns.some((pattern) => pattern.includes('[name]'))
      ? (await names(kind, [routerId], context)).get(routerId)
      : undefined
    return {
      hash: hashOf(Buffer.concat([clientCsr.publicKey, serverCsr.publicKey])),

      async issue({ signer, intermediates, caPem, trustDomain, server }) {
        const own = [...server.hosts, ...addresses.map((address) => splitAddress(address).host)]
        const validity = forYears(1, new Date())
        const issueFor = (role: 'client' | 'server', csr: Csr): Promise<string> => {
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
        const certPem = await issueFor('client', clientCsr)
        const serverCertPem = await issueFor('server', serverCsr)
        return {
          certPem,
          chainPem: certPem + intermediates,
          serverChainPem: serverCertPem + intermediates,
          caPem,
        }
      },

      async register({ certPem }, context) {
        const fingerprint = fingerprintOfPem(certPem)
        const request = { routerId, enrollmentId: enrollment.id, certPem, fingerprint }
        const { position } = await sessions.admitRouter(request, context)
        return { isFirst: true, position }
      },
    }
  }

export const erott = routerMethod({ kind: 'edge-routers', isNamed: true })
export const trott = routerMethod({ kind: 'transit-routers', isNamed: false })
