import { type ChangeLog, waitForFollowers } from '@overlay/platform/change-log'
import { type EnrollmentWish, Fault, type IdentityServiceService, type Methods, notFound } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { wish } from '../credentials/enrollment-wish.js'
import type { Enrollments } from '../credentials/enrollments.js'
import { endSessions } from '../store/api-sessions.js'
import { removeAuthenticators } from '../store/authenticators.js'
import { refuseShuttingOutWithout } from '../store/default-admin.js'
import { changeIdentity } from '../store/identities.js'
import { subjectById } from '../store/subjects.js'

type ReEnroll = Methods<IdentityServiceService>['reEnrollAuthenticator']

/** The authenticator goes, and an enrollment of the same sort takes its place: both or neither. */
export function reEnrollment(changeLog: ChangeLog, pki: Enrollments): ReEnroll {
  const settled = waitForFollowers(changeLog, [pki])
  return async ({ id, expiresAtMs }, context) => {
    const subject = await subjectById(changeLog.db, id)
    if (!subject) throw notFound('authenticator', id) // differs: not a server error
    if (expiresAtMs <= Date.now())
      throw new Fault('REFERENCED_ENTITY_NOT_FOUND', 'expiresAt lies in the past')
    const { identityId, method, username, caId } = subject
    const wanted = wish({ identityId, expiresAtMs, ...sameSort(method, username, caId) })
    await pki.checkEnrollment(wanted, context)
    const { position } = await changeLog.write(context, async (tx) => {
      await refuseShuttingOutWithout(tx, identityId, id)
      const change = await changeIdentity(tx, identityId, sql`name = name`, { enrollmentWanted: wanted })
      const removed = await removeAuthenticators(tx, sql`id = ${id}`)
      if (!change || removed.length === 0) throw notFound('authenticator', id)
      const ended = await endSessions(tx, sql`authenticator_id = ${id}`)
      return { result: undefined, changes: [...ended, ...removed, change] }
    })
    return settled({ id: wanted.id, position }, context)
  }
}

function sameSort(method: string, username: string | null, caId: string | null): Partial<EnrollmentWish> {
  if (method === 'updb') return { method, username: username ?? '' }
  return caId === null ? { method: 'ott' } : { method: 'ottca', caId }
}
