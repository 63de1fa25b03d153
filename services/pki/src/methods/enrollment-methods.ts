import { Fault, invalid, type Methods, notFound, type PkiServiceService } from '@overlay/rpc'
import { type Consumer, writeChanges } from '@overlay/store/change-log'
import { required } from '@overlay/store/kind-store'
import { enrollmentExists, findObjection, invalidMember } from '../kinds/enrollment.js'
import { isOutstanding, renewEnrollment } from '../store/enrollments.js'
import type { MethodDeps } from './method-deps.js'

type EnrollmentDeps = Pick<MethodDeps, 'changeLog' | 'consumers' | 'now'>

/** Enrollments before they are redeemed. */
export const enrollmentMethods = ({ changeLog, consumers, now }: EnrollmentDeps) => {
  const { db } = changeLog
  const untilFollowing = followOnce(consumers.identity)
  return {
    /** Refuses an enrollment that could not be granted later. */
    async checkEnrollment(request, { signal }) {
      await untilFollowing(signal)
      const objection = await findObjection(db, request, now())
      if (objection?.field === 'caId') throw new Fault('NOT_FOUND', objection)
      if (objection) throw invalidMember(objection)
      if (request.identityId && (await isOutstanding(db, request.identityId, request.method)))
        throw enrollmentExists(request.method)
      return {}
    },

    /** Waits for the enrollment that an identity of 0.1.0 has requested. Unused since 0.2.0: identity waits for `Reach`. */
    async grantEnrollment({ position }, { signal }) {
      await consumers.identity.waitFor(required(position), signal)
      return {}
    },

    /** differs: issues another token, as the documents say. The previous one is void. */
    async refreshEnrollment({ id, expiresAtMs }, context) {
      const expiresAt = new Date(expiresAtMs)
      if (expiresAt <= now()) throw invalid('expiresAt', 'expiresAt must be in the future', expiresAt)
      const position = await writeChanges(changeLog, context, async (tx) => {
        const changes = await renewEnrollment(tx, id, expiresAt, ({ identityId }) => {
          // differs: not a crash
          if (!identityId) throw invalid('id', 'a router is enrolled anew instead', id)
        })
        if (changes.length === 0) throw notFound('enrollment', id)
        return changes
      })
      return { id, position }
    },
  } satisfies Partial<Methods<PkiServiceService>>
}

/** Changes of identity carry the requests: identity writes none before this replica follows its changes. */
function followOnce(consumer: Pick<Consumer, 'waitFor'>): (signal: AbortSignal) => Promise<void> {
  const anyPosition = { timeline: '', number: 0 } // of no timeline: reached by the first read of the owner's head
  let isFollowing = false
  return async (signal) => {
    if (isFollowing) return
    await consumer.waitFor(anyPosition, signal)
    isFollowing = true
  }
}
