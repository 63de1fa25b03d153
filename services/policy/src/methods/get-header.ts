import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { contentKey } from '../domain/authorization/content-key.js'
import { isAdmin } from '../domain/state-queries.js'
import type { Deps } from './method-deps.js'

export const getHeader =
  ({ engine }: Deps): Methods<PolicyServiceService>['getHeader'] =>
  async ({ identityId }, context) => {
    await engine.bestEffort(engine.waitFor(context.positions, context))
    const { state } = engine
    return {
      lastChangeAtMs: engine.lastChangeAtMs(identityId),
      positions: engine.positions(),
      contentKey: contentKey(state, { identityId, isAdmin: isAdmin(state, identityId) }),
    }
  }
