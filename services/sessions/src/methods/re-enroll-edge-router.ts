import { type Methods, notFound, type SessionsServiceService } from '@overlay/rpc'
import { resetEnrollment } from '../store/router.js'
import type { Deps } from './method-deps.js'

/** pki follows the new enrollment id and makes the enrollment. */
export const reEnrollEdgeRouter =
  ({ changeLog, waitForFollowers }: Deps): Methods<SessionsServiceService>['reEnrollEdgeRouter'] =>
  async ({ id }, context) => {
    const written = await resetEnrollment(changeLog, context, id)
    if (!written) throw notFound('router', id) // differs: the original answers a server error
    return waitForFollowers(written, context)
  }
