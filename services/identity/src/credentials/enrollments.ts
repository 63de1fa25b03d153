import { randomUUID } from 'node:crypto'
import {
  type Context,
  EnrollmentWish,
  invalid,
  type Methods,
  type PkiServiceService,
  type Written,
} from '@overlay/rpc'
import { afterCommit, withDeadline } from '@overlay/store/change-log'
import { newId } from '@overlay/store/kind-store'
import { type EnrollmentMember, requestedEnrollment } from '../domain/requested-enrollment.js'

/** pki checks an enrollment before the write that requests it, and grants it from our changes. */
export type Enrollments = Pick<Methods<PkiServiceService>, 'checkEnrollment' | 'grantEnrollment'>

/** The enrollment that a create body requests, with its id and token. */
export function enrollmentIn(
  body: Readonly<Record<string, unknown>>,
  identityId: string,
): EnrollmentWish | undefined {
  const member = body.enrollment as EnrollmentMember | null | undefined
  const requested = requestedEnrollment(member)
  if (requested) return newEnrollment({ ...requested, identityId })
  if (member?.updb === '') throw invalid('enrollment.updb', 'a username is required', '')
  return undefined
}

/** pki decides on the expiry where `members` do not. */
export const newEnrollment = (members: Partial<EnrollmentWish>): EnrollmentWish =>
  EnrollmentWish.fromPartial({ id: newId('short'), token: randomUUID(), ...members })

/** Followers get the enrollment as this member of the identity's change. */
export const enrollmentPayload = (wish: EnrollmentWish): object => ({ enrollmentWanted: wish })

const RECENT_MS = 1000

/** Asks pki before the write that requests an enrollment, and to grant it after the commit. */
export interface EnrollmentRequests {
  check(wish: EnrollmentWish, context: Context): Promise<void>
  /** Resolves to the write when pki has granted its enrollment. If pki fails it does so later, from our changes. */
  grant(written: Written, wish: EnrollmentWish, context: Context): Promise<Written>
}

/**
 * Of new identities. pki has nothing to look up for a one-time token: the check only shows that pki answers and follows
 * our changes, as does its last answer if that is recent.
 */
export function openEnrollmentRequests(
  changeLog: Parameters<typeof afterCommit>[0],
  pki: Enrollments,
  now: () => number = () => performance.now(),
): EnrollmentRequests {
  let answeredAt = Number.NEGATIVE_INFINITY
  return {
    async check(wish, context) {
      if (wish.method === 'ott' && now() - answeredAt < RECENT_MS) return
      answeredAt = Number.NEGATIVE_INFINITY
      // without the identity: a new one cannot have an outstanding enrollment
      await pki.checkEnrollment({ ...wish, identityId: '' }, context)
      answeredAt = now()
    },
    async grant(written, wish, context) {
      const { position } = written
      const granted = pki.grantEnrollment({ wish, position }, withDeadline(context)).catch((err: unknown) => {
        answeredAt = Number.NEGATIVE_INFINITY
        throw err
      })
      await afterCommit(changeLog, granted)
      return written
    },
  }
}
