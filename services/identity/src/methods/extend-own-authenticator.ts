import { X509Certificate } from 'node:crypto'
import { Fault, type IdentityServiceService, type Methods, notFound } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { fingerprintOf } from '@overlay/x509'
import { certificatesOf } from '../credentials/certificates.js'
import { issuedToCaller } from '../credentials/own-authenticators.js'
import { storePending } from '../store/authenticators.js'
import type { Deps } from './deps.js'

/** Issues a certificate in place of the one that the caller presents. It is pending until the caller verifies it. */
export const extendOwnAuthenticator =
  ({ changeLog, credentialFeed, pki }: Deps): Methods<IdentityServiceService>['extendOwnAuthenticator'] =>
  async ({ id, csrPem, peerCertificates }, context) => {
    // differs: only the leaf counts, because the connection proves no other key
    const [presented] = certificatesOf(peerCertificates)
    if (!presented || presented.ca) throw new Fault('UNAUTHORIZED')
    const { certPem, fingerprint } = await issuedToCaller(changeLog.db, id, context)
    if (fingerprintOf(presented) !== fingerprint) throw new Fault('UNAUTHORIZED')
    const issued = await pki.extendCertificate({ certPem: certPem ?? '', csrPem }, context)
    const pending = { pem: issued.certPem, fingerprint: fingerprintOf(new X509Certificate(issued.certPem)) }
    const position = await writeChanges(changeLog, context, async (tx) => {
      const extended = await storePending(tx, { id, fingerprint }, pending)
      if (!extended) throw notFound('authenticator', id)
      return [extended]
    })
    await credentialFeed.handOver()
    return { certPem: issued.certPem, caPem: issued.caPem, position }
  }
