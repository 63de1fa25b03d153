import { authenticator } from '@overlay/model'
import {
  type AddAuthenticatorRequest,
  type Context,
  type EnrollmentWish,
  Fault,
  fieldOf,
  type IdentityServiceService,
  type Methods,
  notFound,
} from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { newId, uniqueFault } from '@overlay/store/kind-store'
import { fingerprintOfPem } from '@overlay/x509'
import { enrollmentPayload, newEnrollment } from '../credentials/enrollments.js'
import { turnOf } from '../credentials/hashing.js'
import {
  allowedPassword,
  certificateProof,
  enrollingCertificate,
  noProof,
  type Proof,
  refuseUsername,
} from '../credentials/proof.js'
import { refuseLockoutByRemoval } from '../store/admins.js'
import {
  authenticatorInserter,
  authenticatorOfEnrollment,
  removeAuthenticator,
} from '../store/authenticators.js'
import { touchIdentity } from '../store/identities.js'
import { expectEnrollment } from '../store/outstanding-enrollments.js'
import { endSessionsOfAuthenticator } from '../store/session-ends.js'
import { personOf, type Subject, subjectById } from '../store/subjects.js'
import { enrollByCertificate } from './enroll-by-certificate.js'
import type { MethodDeps } from './method-deps.js'

/** Enrollments: their requests, and the authenticators that they end with. */
export function enrollmentMethods(deps: MethodDeps) {
  const { changeLog, pki, waitForFollowers } = deps
  const { db } = changeLog
  const insert = authenticatorInserter(changeLog)

  const existing = async (enrollmentId: string) => {
    const id = await authenticatorOfEnrollment(db, enrollmentId)
    return id === undefined
      ? undefined
      : { authenticatorId: id, created: false, position: await changeLog.head() }
  }
  return {
    enrollByCertificate: enrollByCertificate(deps),

    /**
     * The last step of an enrollment. The first call with an enrollment's id wins; the others get its authenticator.
     */
    async addAuthenticator(request, context) {
      const { identityId, enrollmentId, isIssuedByNetwork } = request
      // a certificate of the network costs next to nothing, so the insert itself decides
      const earlier = isIssuedByNetwork ? undefined : await existing(enrollmentId)
      if (earlier) return earlier
      const id = newId('short')
      const proof = await proofOf(deps, request, context)
      try {
        const row = { id, identityId, enrollmentId, isIssuedByNetwork, tags: {}, ...proof }
        const position = await insert({ ...row, by: context })
        if (position) return { authenticatorId: id, created: true, position }
      } catch (err) {
        throw conflictOf(err, proof) ?? err
      }
      const first = await existing(enrollmentId)
      if (!first) throw notFound('identity', identityId) // identity or authority have been deleted meanwhile
      return first
    },

    /** Removes an authenticator and requests an enrollment of the same method in its place: both or neither. */
    async reEnrollAuthenticator({ id, expiresAtMs }, context) {
      const subject = await subjectById(db, id)
      if (!subject) throw notFound('authenticator', id) // differs: not a server error
      if (expiresAtMs <= Date.now())
        throw new Fault('REFERENCED_ENTITY_NOT_FOUND', 'expiresAt lies in the past')
      const { identityId } = subject
      const request = newEnrollment({ identityId, expiresAtMs, ...enrollmentLike(subject) })
      await pki.checkEnrollment(request, context)
      const position = await writeChanges(changeLog, context, async (tx) => {
        await refuseLockoutByRemoval(tx, identityId, id)
        await expectEnrollment(tx, request)
        const requested = await touchIdentity(tx, identityId, enrollmentPayload(request))
        const removed = await removeAuthenticator(tx, id)
        if (!requested || removed.length === 0) throw notFound('authenticator', id)
        return [...(await endSessionsOfAuthenticator(tx, id)), ...removed, requested]
      })
      return waitForFollowers({ id: request.id, position }, context, ['pki']) // for the enrollment
    },

    /** Reads of the identity ask pki from now on, until the enrollment ends. */
    async expectEnrollment({ enrollmentId, identityId }) {
      await expectEnrollment(db, { id: enrollmentId, identityId })
      return {}
    },
  } satisfies Partial<Methods<IdentityServiceService>>
}

async function proofOf(
  { authorities, changeLog, hashing }: MethodDeps,
  request: AddAuthenticatorRequest,
  context: Context,
): Promise<Proof> {
  const { identityId, caId, certPem, username, password, peerCertificates } = request
  if (caId !== '') {
    const cas = (await authorities.all(context.signal)).filter(({ id }) => id === caId)
    return certificateProof(await enrollingCertificate(authorities, cas, peerCertificates, context))
  }
  if (certPem !== '') return { ...noProof, method: 'cert', certPem, fingerprint: fingerprintOfPem(certPem) }
  const person = await personOf(changeLog.db, identityId)
  if (!person) throw notFound('identity', identityId)
  refuseUsername(username)
  const allowed = allowedPassword(password, person.passwordRules)
  const hash = await hashing.hash(allowed, turnOf(context, username))
  return { ...noProof, method: 'updb', username, password: hash }
}

/** The certificate, or the user name, that another identity has. */
function conflictOf(err: unknown, { fingerprint }: Proof): Fault | undefined {
  const fault = uniqueFault(authenticator, err)
  return fault && fieldOf(fault) === 'fingerprint'
    ? new Fault('CERT_IN_USE', undefined, err, { fingerprint })
    : fault
}

function enrollmentLike({ method, username, caId }: Subject): Partial<EnrollmentWish> {
  if (method === 'updb') return { method, username: username ?? '' }
  return caId === null ? { method: 'ott' } : { method: 'ottca', caId }
}
