import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { enrolledFactor, writeWithCode } from '../mfa/codes.js'
import { shownByPolicy } from '../mfa/shown-by-policy.js'
import { completeSession } from '../store/second-factors.js'
import type { Deps } from './deps.js'

/** Completes the API session of the caller by a code. */
export const passMfa =
  (deps: Deps): Methods<IdentityServiceService>['passMfa'] =>
  async ({ code }, context) => {
    const use = { code, accepted: 'any', requires: enrolledFactor } as const
    const { stored, position } = await writeWithCode(deps, context, use, async (tx, factor, save) => [
      ...(await completeSession(tx, context.caller.apiSessionId)),
      await save(factor),
    ])
    await deps.credentialFeed.handOver()
    return shownByPolicy(deps, { id: stored.id, position }, context)
  }
