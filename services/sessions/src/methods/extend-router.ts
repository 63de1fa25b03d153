import { X509Certificate } from 'node:crypto'
import { Fault, type Methods, type SessionsServiceService } from '@overlay/rpc'
import { fingerprintOf } from '@overlay/x509'
import type { Deps } from './method-deps.js'

/** Replaces the certificates of the router that presents its own. wire: an expired certificate is accepted. */
export const extendRouter =
  ({ certificates }: Pick<Deps, 'certificates'>): Methods<SessionsServiceService>['extendRouter'] =>
  async ({ csrPem, serverCsrPem, peerCertificates: [der] }, context) => {
    // differs: only the leaf counts, because the connection proves no other key
    const leaf = der && new X509Certificate(der)
    if (!leaf || leaf.ca) throw new Fault('UNAUTHORIZED')
    const router = await certificates.ownerOf(fingerprintOf(leaf))
    if (!router) throw new Fault('UNAUTHORIZED')
    const issued = await certificates.replace(router, { csrPem, serverCsrPem }, context)
    if (!issued) throw new Fault('UNAUTHORIZED')
    const { certPem, intermediatesPem, serverCertPem, position } = issued
    return { chainPem: certPem + intermediatesPem, serverCertPem, position }
  }
