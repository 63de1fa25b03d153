import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { forgetWrongGuesses } from '@overlay/store/guesses'
import { shownByPolicy } from '../mfa/shown-by-policy.js'
import { removeSecondFactor } from '../store/second-factors.js'
import type { Deps } from './deps.js'

/** Removes the second factor of an identity, for an admin, and ends its pauses. */
export const removeMfaOf =
  (deps: Deps): Methods<IdentityServiceService>['removeMfaOf'] =>
  async ({ id }, context) => {
    const position = await writeChanges(deps.changeLog, context, async (tx) => {
      await forgetWrongGuesses(tx, 'code', [id])
      return removeSecondFactor(tx, id)
    })
    return shownByPolicy(deps, { id, position }, context, 'sessions')
  }
