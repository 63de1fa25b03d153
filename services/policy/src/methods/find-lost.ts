import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { accessEvaluator } from '../domain/authorization/session-access.js'
import { accessTypeOf } from './encoding.js'
import type { Deps } from './method-deps.js'

export const findLost =
  ({ engine }: Deps): Methods<PolicyServiceService>['findLost'] =>
  async ({ held }, context) => {
    await engine.waitFor(context.positions, context)
    const evaluate = accessEvaluator(engine.state)
    const states = held.map(({ identityId, serviceId, access, apiSessionId }) =>
      evaluate({ identityId, apiSessionId }, serviceId, accessTypeOf(access)),
    )
    return { lost: states.map(({ lost }) => lost), granting: states.map(({ granting }) => granting) }
  }
