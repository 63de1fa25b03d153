import type { IdentityServiceService, Methods } from '@overlay/rpc'
import * as store from '../store/outstanding-enrollments.js'
import type { Deps } from './deps.js'

/** Reads of the identity ask pki from now on, until the enrollment ends. */
export const expectEnrollment =
  ({ changeLog: { db } }: Deps): Methods<IdentityServiceService>['expectEnrollment'] =>
  async ({ enrollmentId, identityId }) => {
    await store.expectEnrollment(db, { id: enrollmentId, identityId })
    return {}
  }
