import type { Methods, SessionsServiceService } from '@overlay/rpc'
import { encodeViews } from '@overlay/store/kind-store'
import { clientRoutersOf } from '../store/router.js'
import type { Deps } from './method-deps.js'

export const describeRouters =
  ({ changeLog: { db } }: Pick<Deps, 'changeLog'>): Methods<SessionsServiceService>['describeRouters'] =>
  async ({ ids }) => {
    const routers = await clientRoutersOf(db, ids)
    return encodeViews(ids.map((id) => routers.get(id)))
  }
