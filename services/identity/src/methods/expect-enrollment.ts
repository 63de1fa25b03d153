import type { IdentityServiceService, Methods } from '@overlay/rpc'
import * as store from '../store/outstanding-enrollments.js'
import type { MethodDeps } from './method-deps.js'

/** Reads of the identity ask pki from now on, until the enrollment ends. */
export const expectEnrollment =
  ({ changeLog: { db } }: MethodDeps): Methods<IdentityServiceService>['expectEnrollment'] =>
  async ({ enrollmentId, identityId }) => {
    await store.expectEnrollment(db, { id: enrollmentId, identityId })
    return {}
  }
