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
    // under its lock: it may be about to be verified
    const unverified = await changeLog.write(context, async (tx) => {
      const { isVerified } = factorOf(await lockSecondFactor(tx, identityId))
      return { result: !isVerified, changes: isVerified ? [] : await removeSecondFactor(tx, identityId) }
    })
    const { position } = unverified.result
      ? unverified
      : await writeWithCode(deps, context, { code, accepted: 'any', requires: verifiedFactor }, (tx) =>
          removeSecondFactor(tx, identityId),
        )
    await credentialFeed.handOver()
    return shownByPolicy(deps, { id: identityId, position }, context, 'sessions')
  }
