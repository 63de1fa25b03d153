import { writeChanges } from '@overlay/platform/change-log'
import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { removeSecondFactor } from '../store/second-factors.js'
import type { Deps } from './deps.js'

/** Removes the second factor of an identity, for an admin. */
export const removeMfaOf =
  ({ changeLog, waitForFollowers }: Deps): Methods<IdentityServiceService>['removeMfaOf'] =>
  async ({ id }, context) => {
    const position = await writeChanges(changeLog, context, (tx) => removeSecondFactor(tx, id))
    return waitForFollowers({ id, position }, context, [['policy', 'sessions']]) // for posture checks
  }
