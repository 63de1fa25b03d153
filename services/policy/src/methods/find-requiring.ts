import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { policiesRequiring } from '../domain/authorization/session-access.js'
import type { Deps } from './method-deps.js'

export const findRequiring =
  ({ engine }: Deps): Methods<PolicyServiceService>['findRequiring'] =>
  async ({ postureCheckIds }, context) => {
    await engine.waitFor(context.positions, context)
    return { policyIds: policiesRequiring(engine.state, postureCheckIds) }
  }
