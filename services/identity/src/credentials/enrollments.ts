import { afterCommit, type ChangeLog, withDeadline } from '@overlay/platform/change-log'
import type {
  ChangeServiceService,
  Context,
  EnrollmentWish,
  Methods,
  PkiServiceService,
  Written,
} from '@overlay/rpc'

/** What pki does for enrollments that are wanted here: it checks them before, and makes them from our changes. */
export type Enrollments = Pick<Methods<PkiServiceService>, 'checkEnrollment' | 'grantEnrollment'> &
  Pick<Methods<ChangeServiceService>, 'reach'>

/** Returns a write when pki has made what it wants, or will make it out of our changes. */
export const granting =
  (changeLog: ChangeLog, pki: Enrollments) =>
  async (written: Written, wish: EnrollmentWish, context: Context): Promise<Written> => {
    const { position } = written
    await afterCommit(changeLog, pki.grantEnrollment({ wish, position }, withDeadline(context)))
    return written
  }
