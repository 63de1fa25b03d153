import { X509Certificate } from 'node:crypto'
import { apiSessionCertificate } from '@overlay/model'
import { Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { newId } from '@overlay/store/kind-store'
import { addSessionCertificate } from '../store/session-certificates.js'
import type { Deps } from './deps.js'

/** Issues a certificate for the API session of the caller. It is deleted with the session. */
export const createSessionCertificate =
  ({ changeLog, credentialFeed, pki }: Deps): Methods<IdentityServiceService>['createSessionCertificate'] =>
  async ({ csrPem }, context) => {
    const { identityId, apiSessionId } = context.caller
    const id = newId(apiSessionCertificate.ids)
    const issued = await pki.issueSessionCertificate({ id, identityId, apiSessionId, csrPem }, context)
    const leaf = new X509Certificate(issued.certPem)
    await writeChanges(changeLog, context, async (tx) => {
      const added = await addSessionCertificate(tx, { id, apiSessionId, leaf, pem: issued.chainPem })
      if (!added) throw new Fault('UNAUTHORIZED') // the session has ended meanwhile
      return [added]
    })
    await credentialFeed.handOver()
    return { id, chainPem: issued.chainPem, caPem: issued.caPem }
  }
