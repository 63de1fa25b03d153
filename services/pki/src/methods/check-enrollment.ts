import { Fault } from '@overlay/rpc'
import type { Consumer } from '@overlay/store/change-log'
import { enrollmentExists, findObjection, invalidMember } from '../kinds/enrollment.js'
import { isOutstanding } from '../store/enrollments.js'
import type { Deps, PkiMethods } from './deps.js'

/** Refuses an enrollment that could not be granted later. */
export function checkEnrollment({ changeLog, consumers, now }: Deps): PkiMethods['checkEnrollment'] {
  const { db } = changeLog
  const untilFollowing = followOnce(consumers.identity)
  return async (wish, { signal }) => {
    await untilFollowing(signal)
    const objection = await findObjection(db, wish, now())
    if (objection?.field === 'caId') throw new Fault('NOT_FOUND', objection)
    if (objection) throw invalidMember(objection)
    if (wish.identityId && (await isOutstanding(db, wish.identityId, wish.method)))
      throw enrollmentExists(wish.method)
    return {}
  }
}

/** Changes of identity carry the wishes: identity writes none before this replica follows its changes. */
function followOnce(consumer: Pick<Consumer, 'waitFor'>): (signal: AbortSignal) => Promise<void> {
  const anyPosition = { timeline: '', number: 0 } // of no timeline: reached by the first read of the owner's head
  let isFollowing = false
  return async (signal) => {
    if (isFollowing) return
    await consumer.waitFor(anyPosition, signal)
    isFollowing = true
  }
}
