import { X509Certificate } from 'node:crypto'
import { Fault, type Methods, notFound, type SessionsServiceService } from '@overlay/rpc'
import { encodeViews } from '@overlay/store/kind-store'
import { fingerprintOf } from '@overlay/x509'
import { linkListenersIn } from '../channel/link-listeners.js'
import { routePath } from '../store/circuit.js'
import { admitRouter, clientRoutersOf, resetEnrollment } from '../store/router.js'
import { type AddressesIn, claimHosts } from '../store/router-host.js'
import type { Deps } from './method-deps.js'

type RouterDeps = Pick<Deps, 'changeLog' | 'certificates' | 'waitForFollowers' | 'log'>

/** Routers: their enrollment, their certificates, and what others learn of them. */
export function routerMethods({ changeLog, certificates, waitForFollowers, log }: RouterDeps) {
  const { db } = changeLog
  return {
    /** pki follows the new enrollment id and makes the enrollment. */
    async reEnrollEdgeRouter({ id }, context) {
      const written = await resetEnrollment(changeLog, context, id)
      if (!written) throw notFound('router', id) // differs: the original answers a server error
      return waitForFollowers(written, context)
    },

    /** Admits a router by its current enrollment only: an enrollment that was replaced admits no router. */
    async admitRouter(admission, context) {
      const written = await admitRouter(changeLog, context, admission)
      if (!written) throw notFound('router', admission.routerId)
      return written
    },

    /** A router with a host of another one could stand in for it. What a router has had it keeps. */
    async claimRouterHosts({ routerId, hosts }) {
      const refused = await claimHosts(db, routerId, hosts, addressesIn, (unreadable, err) =>
        log.warn({ err, routerId: unreadable }, 'certificate of a router not read: it reserves no hosts'),
      )
      if (!refused) throw notFound('router', routerId)
      return { refused: [...refused] }
    },

    /** Replaces the certificates of the router that presents its own. wire: an expired certificate is accepted. */
    async extendRouter({ csrPem, serverCsrPem, peerCertificates: [der] }, context) {
      // differs: only the leaf counts, because the connection proves no other key
      const leaf = der && new X509Certificate(der)
      const router = leaf && !leaf.ca ? await certificates.ownerOf(fingerprintOf(leaf)) : undefined
      const issued = router && (await certificates.replace(router, { csrPem, serverCsrPem }, context))
      if (!issued) throw new Fault('UNAUTHORIZED')
      const { certPem, intermediatesPem, serverCertPem, position } = issued
      return { chainPem: certPem + intermediatesPem, serverCertPem, position }
    },

    async describeRouters({ ids }) {
      const routers = await clientRoutersOf(db, ids)
      return encodeViews(ids.map((id) => routers.get(id)))
    },

    /** wire: an unknown session answers 200 with an empty path. A caller who is not an admin sees the paths of its own sessions. */
    getRoutePath: async ({ id }, { caller }) => ({ routerIds: await routePath(db, id, caller) }),
  } satisfies Partial<Methods<SessionsServiceService>>
}

const addressesIn: AddressesIn = (listeners) =>
  (linkListenersIn(listeners) ?? []).map(({ address }) => address)
