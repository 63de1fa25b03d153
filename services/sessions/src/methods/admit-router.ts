import { type Methods, notFound, type SessionsServiceService } from '@overlay/rpc'
import { admitRouter as saveAdmission } from '../store/router.js'
import type { Deps } from './method-deps.js'

/** Admits a router by its current enrollment only: an enrollment that was replaced admits no router. */
export const admitRouter =
  ({ changeLog }: Pick<Deps, 'changeLog'>): Methods<SessionsServiceService>['admitRouter'] =>
  async (admission, context) => {
    const written = await saveAdmission(changeLog, context, admission)
    if (!written) throw notFound('router', admission.routerId)
    return written
  }
