import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { factorOf, verifiedFactor, writeWithCode } from '../mfa/codes.js'
import { lockSecondFactor, removeSecondFactor } from '../store/second-factors.js'
import type { Deps } from './deps.js'

/** Removes the second factor of the caller, once it is verified only for a code. */
export const removeMfa =
  ({ changeLog, secondFactors, waitForFollowers }: Deps): Methods<IdentityServiceService>['removeMfa'] =>
  async ({ code }, context) => {
    const { identityId } = context.caller
    const { isVerified } = factorOf(
      await changeLog.db.transaction(context.deadline, (tx) => lockSecondFactor(tx, identityId)),
    )
    if (isVerified)
      await writeWithCode(changeLog, context, async (tx) => {
        const stored = verifiedFactor(await lockSecondFactor(tx, identityId))
        const factor = await secondFactors.useCode(tx, stored, code, 'any')
        return factor && { stored, changes: [await secondFactors.save(tx, stored, factor)] }
      })
    const { position } = await changeLog.write(context, async (tx) => ({
      result: undefined,
      changes: await removeSecondFactor(tx, identityId, { isByOwner: true }),
    }))
    return waitForFollowers({ id: identityId, position }, context, ['policy']) // for posture checks
  }
