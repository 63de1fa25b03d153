import { X509Certificate } from 'node:crypto'
import { apiSessionCertificate } from '@overlay/model'
import { type Context, Fault, type IdentityServiceService, type Methods, notFound } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { guessHistory } from '@overlay/store/guesses'
import { bodyIn, newId } from '@overlay/store/kind-store'
import type { Db } from '@overlay/store/postgres'
import { fingerprintOf } from '@overlay/x509'
import { certificatesOf, onlyCertificate } from '../credentials/certificates.js'
import { tryPassword } from '../login/password.js'
import { refuseLogin } from '../login/refusals.js'
import { type Authenticator, authenticatorById, storePending, usePending } from '../store/authenticators.js'
import { shareIdentity } from '../store/identities.js'
import { addSessionCertificate, removeSessionCertificates } from '../store/session-credentials.js'
import { endSessionsOfAuthenticator } from '../store/session-ends.js'
import { type Subject, subjectById } from '../store/subjects.js'
import type { MethodDeps } from './method-deps.js'

/** The authenticators of the caller, also of an admin. */
export function ownAuthenticatorMethods(deps: MethodDeps) {
  const { changeLog, credentialFeed, entities, pki } = deps
  return {
    /** The authenticators of the caller, also of an admin. */
    async listOwnAuthenticators(request, context) {
      const within = { ids: [], roles: [], symbol: 'identity', value: context.caller.identityId }
      const page = await entities.list({ ...request, kind: 'authenticators', within }, context)
      const rows = JSON.parse(Buffer.from(page.rows).toString()) as OwnAuthenticator[]
      return { ...page, rows: Buffer.from(JSON.stringify(rows.map(withOwnLinks))) }
    },

    async getOwnAuthenticator({ id }, context) {
      await ownSubject(changeLog.db, id, context)
      const ref = { kind: 'authenticators', id }
      const { json } = await entities.get({ ref, perspective: undefined }, context)
      const shown = JSON.parse(Buffer.from(json).toString()) as OwnAuthenticator
      return { json: Buffer.from(JSON.stringify(withOwnLinks(shown))) }
    },

    /** Changes name or password of the caller, who must know the current password. */
    async updateOwnAuthenticator({ ref, json, mask }, context) {
      const { changeLog, entities } = deps
      const id = ref?.id ?? ''
      const subject = await ownSubject(changeLog.db, id, context)
      if (subject.method !== 'updb') throw new Fault('CAN_NOT_UPDATE_AUTHENTICATOR')
      const { currentPassword } = bodyIn(json) as { currentPassword?: string }
      const refusal = await tryPassword(
        { ...deps, context },
        {
          username: subject.username ?? '',
          password: currentPassword ?? '',
          find: async (guess) => ({ history: await guessHistory(changeLog.db, guess), subject }),
          refuse: async (_subject, isCorrect) => (isCorrect ? undefined : 'wrong password'),
        },
      )
      if (refusal) {
        const { identityId, identityName, username } = subject
        refuseLogin(deps.noteRefusal, context, {
          method: 'password',
          reason: refusal,
          username: username ?? undefined,
          identityId,
          identityName,
          apiSessionId: context.caller.apiSessionId,
        })
        // differs: the password is not sent back
        const detail = { field: 'currentPassword', reason: 'invalid current password', value: '' }
        throw new Fault('UNAUTHORIZED', detail)
      }
      return entities.update({ ref: { kind: 'authenticators', id }, json, mask }, context)
    },

    /**
     * Issues a certificate that replaces the one that the caller presents. It is pending until the caller verifies it.
     */
    async extendOwnAuthenticator({ id, csrPem, peerCertificates }, context) {
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
      await credentialFeed.deliver()
      return { certPem: issued.certPem, caPem: issued.caPem, position }
    },

    /** Replaces the certificate by the pending one: a client that sends it back has it. */
    async verifyOwnAuthenticator({ id, certPem }, context) {
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
      await credentialFeed.deliver()
      return { id, position }
    },
  } satisfies Partial<Methods<IdentityServiceService>>
}

/** wire: INVALID_CLIENT_CERT without a reason, whatever is wrong with the certificate. */
const notPending = (): Fault => new Fault('INVALID_CLIENT_CERT')

/** An authenticator as answers show it. */
export interface OwnAuthenticator {
  readonly id: string
}

/** Links of the self-service replace those of the collection. */
export const withOwnLinks = (shown: OwnAuthenticator): object => ({
  ...shown,
  _links: { self: { href: `./current-identity/authenticators/${shown.id}` } },
})

/** An authenticator of the caller, also of an admin. */
export async function ownSubject(db: Db, id: string, { caller }: Context): Promise<Subject> {
  const subject = await subjectById(db, id)
  if (subject?.identityId !== caller.identityId) throw notFound('authenticator', id)
  return subject
}

/** A certificate that the network has issued to the caller. The order of the checks is that of the original. */
export async function issuedToCaller(db: Db, id: string, { caller }: Context): Promise<Authenticator> {
  const stored = await authenticatorById(db, id)
  if (!stored) throw notFound('authenticator', id)
  if (stored.method !== 'cert') throw new Fault('CAN_NOT_UPDATE_AUTHENTICATOR')
  // wire: 401 for the certificate of another identity, not 404
  if (stored.identityId !== caller.identityId) throw new Fault('UNAUTHORIZED')
  if (!stored.isIssuedByNetwork || !stored.certPem) throw new Fault('CAN_NOT_UPDATE_AUTHENTICATOR')
  return stored
}
