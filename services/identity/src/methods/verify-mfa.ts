import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { unverifiedFactor, writeWithCode } from '../mfa/codes.js'
import { shownByPolicy } from '../mfa/shown-by-policy.js'
import { touchIdentity } from '../store/identities.js'
import { completeSession } from '../store/second-factors.js'
import type { Deps } from './deps.js'

/** Verifies a new second factor by a code of the app. It completes the session, too. */
export const verifyMfa =
  (deps: Deps): Methods<IdentityServiceService>['verifyMfa'] =>
  async ({ code }, context) => {
    const { identityId, apiSessionId } = context.caller
    const use = { code, accepted: 'app', requires: unverifiedFactor } as const
    const { stored, position } = await writeWithCode(deps, context, use, async (tx, factor, save) => {
      const completed = await completeSession(tx, apiSessionId)
      const shown = await touchIdentity(tx, identityId)
      return [...completed, ...(shown ? [shown] : []), await save(factor, true)]
    })
    await deps.credentialFeed.handOver()
    return shownByPolicy(deps, { id: stored.id, position }, context)
  }
