import { Fault } from '@overlay/rpc'
import type { Names } from '@overlay/store/kind-store'
import { fingerprintOfPem } from '@overlay/x509'
import { ownerIdOf } from '../domain/enrollment.js'
import { parseCsr } from './client-certificate.js'
import { type EnrollMethod, hashOf, type Owners } from './enroll-method.js'
import {
  hostClaims,
  issueRouterCertificates,
  type RouterNameRules,
  reserveHosts,
} from './router-certificates.js'

const invalidServer = 'invalid server CSR'
const invalidClient = 'invalid client CSR'

/** Decides which names the certificates of routers have. */
export interface RouterNaming extends RouterNameRules {
  readonly names: Names
}

interface RouterKind {
  readonly kind: 'edge-routers' | 'transit-routers'
  /** Whether the client's request must name the router. */
  readonly isNamed: boolean
}

const routerMethod =
  ({ kind, isNamed }: RouterKind) =>
  ({ sessions }: Owners, naming: RouterNaming): EnrollMethod =>
  async ({ csrPem, serverCsrPem }, enrollment, context) => {
    const routerId = ownerIdOf(enrollment)
    if (serverCsrPem === undefined) throw new Fault('MISSING_OR_INVALID_CSR', invalidServer)
    if (csrPem === undefined) throw new Fault('MISSING_OR_INVALID_CSR', invalidClient)
    const serverCsr = await parseCsr(serverCsrPem, invalidServer)
    const clientCsr = await parseCsr(csrPem, invalidClient)
    if (isNamed && clientCsr.commonName !== routerId) throw new Fault('COULD_NOT_PROCESS_CSR', invalidClient)
    const name = naming.patterns.some((pattern) => pattern.includes('[name]'))
      ? (await naming.names(kind, [routerId], context)).get(routerId)
      : undefined
    const requests = { routerId, name, client: clientCsr, server: serverCsr }
    let refused: ReadonlySet<string> | undefined
    return {
      hash: hashOf(Buffer.concat([clientCsr.publicKey, serverCsr.publicKey])),

      async prepare(keys) {
        refused = await reserveHosts(keys, naming, requests, hostClaims(sessions, context))
      },

      async issue(keys) {
        if (!refused) throw new Error('the hosts of the router are not reserved')
        const { certPem, serverCertPem } = await issueRouterCertificates(keys, naming, requests, refused)
        return {
          certPem,
          chainPem: certPem + keys.intermediates,
          serverChainPem: serverCertPem + keys.intermediates,
          caPem: keys.caPem,
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
