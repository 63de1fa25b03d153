import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { unverifiedFactor, writeWithCode } from '../mfa/codes.js'
import { touchIdentity } from '../store/identities.js'
import { completeSession, lockSecondFactor } from '../store/second-factors.js'
import type { Deps } from './deps.js'

/** Verifies a new second factor by a code of the app. It completes the session, too. */
export const verifyMfa =
  ({ changeLog, secondFactors, waitForFollowers }: Deps): Methods<IdentityServiceService>['verifyMfa'] =>
  async ({ code }, context) => {
    const { identityId, apiSessionId } = context.caller
    const { stored, position } = await writeWithCode(changeLog, context, async (tx) => {
      const stored = unverifiedFactor(await lockSecondFactor(tx, identityId))
      const factor = await secondFactors.useCode(tx, stored, code, 'app')
      if (!factor) return undefined
      const completed = await completeSession(tx, apiSessionId)
      const shown = await touchIdentity(tx, identityId)
      const saved = await secondFactors.save(tx, stored, factor, true)
      return { stored, changes: [...completed, ...(shown ? [shown] : []), saved] }
    })
    return waitForFollowers({ id: stored.id, position }, context, ['policy']) // for posture checks
  }
