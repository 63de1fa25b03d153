import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { enrolledFactor, writeWithCode } from '../mfa/codes.js'
import { completeSession, lockSecondFactor } from '../store/second-factors.js'
import type { Deps } from './deps.js'

/** Completes the API session of the caller by a code. */
export const passMfa =
  ({ changeLog, secondFactors, waitForFollowers }: Deps): Methods<IdentityServiceService>['passMfa'] =>
  async ({ code }, context) => {
    const { identityId, apiSessionId } = context.caller
    const { stored, position } = await writeWithCode(changeLog, context, async (tx) => {
      const stored = enrolledFactor(await lockSecondFactor(tx, identityId))
      const factor = await secondFactors.useCode(tx, stored, code, 'any')
      if (!factor) return undefined
      const completed = await completeSession(tx, apiSessionId)
      return { stored, changes: [...completed, await secondFactors.save(tx, stored, factor)] }
    })
    return waitForFollowers({ id: stored.id, position }, context, ['policy']) // for posture checks
  }
