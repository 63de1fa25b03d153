import type { Methods, SessionsServiceService } from '@overlay/rpc'
import { routePath } from '../store/circuit.js'
import type { Deps } from './method-deps.js'

/** wire: an unknown session answers 200 with an empty path. A caller who is not an admin sees the paths of its own sessions. */
export const getRoutePath =
  ({ changeLog: { db } }: Pick<Deps, 'changeLog'>): Methods<SessionsServiceService>['getRoutePath'] =>
  async ({ id }, { caller }) => ({ routerIds: await routePath(db, id, caller) })
