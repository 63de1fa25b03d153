import { type EnrollmentWish, Fault, type IdentityServiceService, type Methods, notFound } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { enrollmentPayload, newEnrollment } from '../credentials/enrollments.js'
import { refuseLockoutByRemoval } from '../store/admins.js'
import { removeAuthenticator } from '../store/authenticators.js'
import { touchIdentity } from '../store/identities.js'
import { expectEnrollment } from '../store/outstanding-enrollments.js'
import { endSessionsOfAuthenticator } from '../store/session-ends.js'
import { type Subject, subjectById } from '../store/subjects.js'
import type { MethodDeps } from './method-deps.js'

/** Removes an authenticator and requests an enrollment of the same kind in its place: both or neither. */
export const reEnrollAuthenticator =
  ({
    changeLog,
    pki,
    waitForFollowers,
  }: MethodDeps): Methods<IdentityServiceService>['reEnrollAuthenticator'] =>
  async ({ id, expiresAtMs }, context) => {
    const subject = await subjectById(changeLog.db, id)
    if (!subject) throw notFound('authenticator', id) // differs: not a server error
    if (expiresAtMs <= Date.now())
      throw new Fault('REFERENCED_ENTITY_NOT_FOUND', 'expiresAt lies in the past')
    const { identityId } = subject
    const wish = newEnrollment({ identityId, expiresAtMs, ...enrollmentLike(subject) })
    await pki.checkEnrollment(wish, context)
    const position = await writeChanges(changeLog, context, async (tx) => {
      await refuseLockoutByRemoval(tx, identityId, id)
      await expectEnrollment(tx, wish)
      const requested = await touchIdentity(tx, identityId, enrollmentPayload(wish))
      const removed = await removeAuthenticator(tx, id)
      if (!requested || removed.length === 0) throw notFound('authenticator', id)
      return [...(await endSessionsOfAuthenticator(tx, id)), ...removed, requested]
    })
    return waitForFollowers({ id: wish.id, position }, context, ['pki']) // for the enrollment
  }

function enrollmentLike({ method, username, caId }: Subject): Partial<EnrollmentWish> {
  if (method === 'updb') return { method, username: username ?? '' }
  return caId === null ? { method: 'ott' } : { method: 'ottca', caId }
}
