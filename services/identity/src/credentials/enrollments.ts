import { randomUUID } from 'node:crypto'
import { EnrollmentWish, invalid, type Methods, type PkiServiceService } from '@overlay/rpc'
import { newId } from '@overlay/store/kind-store'
import { type EnrollmentMember, requestedEnrollment } from '../domain/requested-enrollment.js'

/** pki checks an enrollment before the write that requests it, and grants it from our changes. */
export type Enrollments = Pick<Methods<PkiServiceService>, 'checkEnrollment'>

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
export const enrollmentPayload = (request: EnrollmentWish): object => ({ enrollmentWanted: request })
