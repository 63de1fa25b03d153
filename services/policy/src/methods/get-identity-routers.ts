import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { routersOfIdentities } from '../domain/state-queries.js'
import type { Deps } from './method-deps.js'

export const getIdentityRouters =
  ({ engine }: Deps): Methods<PolicyServiceService>['getIdentityRouters'] =>
  async ({ identityIds }, context) => {
    await engine.waitFor(context.positions, context)
    const { sets, setOf } = routersOfIdentities(engine.state, identityIds)
    return { sets: sets.map((ids) => ({ ids })), setOf: [...setOf] }
  }
