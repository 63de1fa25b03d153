import type { ChangeLog, WaitForFollowers } from '@overlay/platform/change-log'
import { type Methods, notFound, type SessionsServiceService } from '@overlay/rpc'
import { resetEnrollment } from '../store/router.js'

export interface ReEnrollDeps {
  readonly changeLog: ChangeLog
  readonly waitForFollowers: WaitForFollowers
}

/** pki follows the new enrollment id and makes the enrollment. */
export const reEnrollEdgeRouter =
  ({ changeLog, waitForFollowers }: ReEnrollDeps): Methods<SessionsServiceService>['reEnrollEdgeRouter'] =>
  async ({ id }, context) => {
    const written = await resetEnrollment(changeLog, context, id)
    if (!written) throw notFound('router', id) // differs: the original answers a server error
    return waitForFollowers(written, context)
  }
