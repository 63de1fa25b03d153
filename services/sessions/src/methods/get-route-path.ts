import type { Db } from '@overlay/platform/postgres'
import type { Methods, SessionsServiceService } from '@overlay/rpc'
import { routePath } from '../store/circuit.js'

/** wire: never not found. A caller who is not an admin sees the paths of its own sessions. */
export const getRoutePath =
  (db: Db): Methods<SessionsServiceService>['getRoutePath'] =>
  async ({ id }, { caller }) => ({ routerIds: await routePath(db, id, caller) })
