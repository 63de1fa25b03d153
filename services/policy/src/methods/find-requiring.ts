import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { policiesRequiring } from '../domain/posture/access.js'
import type { Deps } from './deps.js'

export const findRequiring =
  ({ engine }: Deps): Methods<PolicyServiceService>['findRequiring'] =>
  async ({ postureCheckIds }, context) => {
    await engine.waitFor(context.positions, context)
    return { policyIds: policiesRequiring(engine.state, postureCheckIds) }
  }
