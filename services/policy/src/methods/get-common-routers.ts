import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { commonRouters } from '../domain/state-queries.js'
import type { Deps } from './method-deps.js'

export const getCommonRouters =
  ({ engine }: Deps): Methods<PolicyServiceService>['getCommonRouters'] =>
  async ({ pairs }, context) => {
    await engine.bestEffort(engine.waitFor(context.positions, context))
    return {
      routers: pairs.map(({ identityId, serviceId }) => ({
        ids: commonRouters(engine.state, identityId, serviceId),
      })),
    }
  }
