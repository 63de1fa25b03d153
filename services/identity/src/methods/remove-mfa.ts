import { writeChanges } from '@overlay/platform/change-log'
import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { factorOf, verifiedFactor, writeWithCode } from '../mfa/codes.js'
import { shownByPolicy } from '../mfa/shown-by-policy.js'
import { lockSecondFactor, removeSecondFactor } from '../store/second-factors.js'
import type { Deps } from './deps.js'

/** Removes the second factor of the caller, once it is verified only for a code. */
export const removeMfa =
  (deps: Deps): Methods<IdentityServiceService>['removeMfa'] =>
  async ({ code }, context) => {
    const { changeLog, credentialFeed } = deps
    const { identityId } = context.caller
    const { isVerified } = factorOf(
      await changeLog.db.transaction(context.deadline, (tx) => lockSecondFactor(tx, identityId)),
    )
    if (isVerified) await writeWithCode(deps, context, { code, accepted: 'any', requires: verifiedFactor })
    const position = await writeChanges(changeLog, context, (tx) => removeSecondFactor(tx, identityId))
    await credentialFeed.handOver()
    return shownByPolicy(deps, { id: identityId, position }, context, 'sessions')
  }
