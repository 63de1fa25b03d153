import { apiSessionCertificate } from '@overlay/model'
import { Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { newId } from '@overlay/store/kind-store'
import { fingerprintOf } from '@overlay/x509'
import { onlyCertificate } from '../credentials/certificates.js'
import { issuedToCaller } from '../credentials/own-authenticators.js'
import { usePending } from '../store/authenticators.js'
import { shareIdentity } from '../store/identities.js'
import { addSessionCertificate, removeSessionCertificates } from '../store/session-certificates.js'
import { endSessionsOfAuthenticator } from '../store/session-ends.js'
import type { Deps } from './deps.js'

/** wire: without the reason. */
const notPending = (): Fault => new Fault('INVALID_CLIENT_CERT')

/** Puts the pending certificate in place of the former one: a client that sends it back has it. */
export const verifyOwnAuthenticator =
  ({ changeLog, credentialFeed }: Deps): Methods<IdentityServiceService>['verifyOwnAuthenticator'] =>
  async ({ id, certPem }, context) => {
    const { fingerprint, unverifiedFingerprint: pending } = await issuedToCaller(changeLog.db, id, context)
    if (pending === null) throw new Fault('CAN_NOT_UPDATE_AUTHENTICATOR')
    const certificate = onlyCertificate(certPem, notPending)
    if (fingerprintOf(certificate) !== pending) throw notPending()
    const { identityId, apiSessionId } = context.caller
    const position = await writeChanges(changeLog, context, async (tx) => {
      await shareIdentity(tx, identityId)
      const swapped = await usePending(tx, id, pending)
      if (!swapped) throw new Fault('CAN_NOT_UPDATE_AUTHENTICATOR')
      const added = await addSessionCertificate(tx, {
        id: newId(apiSessionCertificate.ids),
        apiSessionId,
        leaf: certificate,
        pem: certificate.toString(),
      })
      const removed = await removeSessionCertificates(tx, fingerprint)
      // differs: sessions that the former certificate opened end with it
      const ended = await endSessionsOfAuthenticator(tx, id, apiSessionId)
      return [...(added ? [added] : []), ...removed, ...ended, swapped]
    })
    await credentialFeed.handOver()
    return { id, position }
  }
