import { X509Certificate } from 'node:crypto'
import { apiSessionCertificate, authenticator } from '@overlay/model'
import type { ChangeLog } from '@overlay/platform/change-log'
import { newId } from '@overlay/platform/kind-store'
import {
  type Context,
  Fault,
  type IdentityServiceService,
  type Methods,
  notFound,
  type PkiServiceService,
} from '@overlay/rpc'
import sql from 'sql-template-tag'
import { onlyCertificate } from '../credentials/certificates.js'
import { certificatesOf } from '../credentials/presented.js'
import { fingerprintOf } from '../domain/chain.js'
import { endSessionsOf } from '../store/api-sessions.js'
import { type Authenticator, authenticatorById } from '../store/authenticators.js'
import { changeRow } from '../store/identities.js'
import { addSessionCertificate, removeSessionCertificates } from '../store/session-certificates.js'

type Own = Pick<
  Methods<IdentityServiceService>,
  'extendOwnAuthenticator' | 'verifyOwnAuthenticator' | 'createSessionCertificate'
>

export type Issuer = Pick<Methods<PkiServiceService>, 'extendCertificate' | 'issueSessionCertificate'>

/** wire: not a word about what is wrong with it. */
const notPending = (): Fault => new Fault('INVALID_CLIENT_CERT')

/** Certificates that callers ask for themselves. The order of the steps is the order of the checks. */
export function ownCertificates(changeLog: ChangeLog, pki: Issuer): Own {
  const issuedToCaller = async (id: string, { caller }: Context): Promise<Authenticator> => {
    const found = await authenticatorById(changeLog.db, id)
    if (!found) throw notFound('authenticator', id)
    if (found.method !== 'cert') throw new Fault('CAN_NOT_UPDATE_AUTHENTICATOR')
    if (found.identityId !== caller.identityId) throw new Fault('UNAUTHORIZED') // wire: no 404 here
    if (!found.isIssuedByNetwork || !found.certPem) throw new Fault('CAN_NOT_UPDATE_AUTHENTICATOR')
    return found
  }
  return {
    async extendOwnAuthenticator({ id, csrPem, peerCertificates }, context) {
      // differs: the leaf alone counts, since the connection proves no other key
      const [presented] = certificatesOf(peerCertificates)
      if (!presented || presented.ca) throw new Fault('UNAUTHORIZED')
      const { certPem, fingerprint } = await issuedToCaller(id, context)
      if (fingerprintOf(presented) !== fingerprint) throw new Fault('UNAUTHORIZED')
      const issued = await pki.extendCertificate({ certPem: certPem ?? '', csrPem }, context)
      const pending = fingerprintOf(new X509Certificate(issued.certPem))
      const { position } = await changeLog.write(context, async (tx) => {
        const extended = await changeRow(
          tx,
          authenticator,
          sql`id = ${id} and fingerprint = ${fingerprint}`,
          sql`unverified_cert_pem = ${issued.certPem}, unverified_fingerprint = ${pending}`,
        )
        if (!extended) throw notFound('authenticator', id)
        return { result: undefined, changes: [extended] }
      })
      return { certPem: issued.certPem, caPem: issued.caPem, position }
    },

    async verifyOwnAuthenticator({ id, certPem }, context) {
      const { fingerprint, unverifiedFingerprint: pending } = await issuedToCaller(id, context)
      if (pending === null) throw new Fault('CAN_NOT_UPDATE_AUTHENTICATOR')
      const verified = onlyCertificate(certPem, notPending)
      if (fingerprintOf(verified) !== pending) throw notPending()
      const { identityId, apiSessionId } = context.caller
      const { position } = await changeLog.write(context, async (tx) => {
        // before all others, as whoever deletes it has it: who waits for whom does not turn in a circle
        await tx.query(sql`select from identity where id = ${identityId} for key share`)
        const swapped = await changeRow(
          tx,
          authenticator,
          sql`id = ${id} and unverified_fingerprint = ${pending}`,
          sql`cert_pem = unverified_cert_pem, fingerprint = unverified_fingerprint,
              unverified_cert_pem = null, unverified_fingerprint = null`,
        )
        if (!swapped) throw new Fault('CAN_NOT_UPDATE_AUTHENTICATOR') // somebody else was faster
        const added = await addSessionCertificate(tx, {
          id: newId(apiSessionCertificate.ids),
          apiSessionId,
          leaf: verified,
          pem: verified.toString(),
        })
        const removed = await removeSessionCertificates(tx, fingerprint)
        // differs: sessions that the former certificate opened end with it
        const ended = await endSessionsOf(tx, id, apiSessionId)
        return { result: undefined, changes: [...(added ? [added] : []), ...removed, ...ended, swapped] }
      })
      return { id, position }
    },

    async createSessionCertificate({ csrPem }, context) {
      const { identityId, apiSessionId } = context.caller
      const id = newId(apiSessionCertificate.ids)
      const issued = await pki.issueSessionCertificate({ id, identityId, apiSessionId, csrPem }, context)
      const leaf = new X509Certificate(issued.certPem)
      await changeLog.write(context, async (tx) => {
        const added = await addSessionCertificate(tx, { id, apiSessionId, leaf, pem: issued.chainPem })
        if (!added) throw new Fault('UNAUTHORIZED') // the session has ended meanwhile
        return { result: undefined, changes: [added] }
      })
      return { id, chainPem: issued.chainPem, caPem: issued.caPem }
    },
  }
}
