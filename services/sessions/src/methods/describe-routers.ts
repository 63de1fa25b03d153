import { encodeViews } from '@overlay/platform/kind-store'
import type { Db } from '@overlay/platform/postgres'
import type { Methods, SessionsServiceService } from '@overlay/rpc'
import { clientRoutersOf } from '../store/router.js'

export const describeRouters =
  (db: Db): Methods<SessionsServiceService>['describeRouters'] =>
  async ({ ids }) => {
    const routers = await clientRoutersOf(db, ids)
    return encodeViews(ids.map((id) => routers.get(id)))
  }
