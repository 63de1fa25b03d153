import type { ChangeServiceService, Methods, PkiServiceService } from '@overlay/rpc'

/** What pki does for enrollments that are wanted here: it checks them before, and makes them from our changes. */
export type Enrollments = Pick<Methods<PkiServiceService>, 'checkEnrollment'> &
  Pick<Methods<ChangeServiceService>, 'reach'>
