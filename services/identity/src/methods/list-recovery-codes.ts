import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { verifiedFactor, writeWithCode } from '../mfa/codes.js'
import { lockSecondFactor } from '../store/second-factors.js'
import type { Deps } from './deps.js'

/** The unused recovery codes of the caller, for a code of the app. */
export const listRecoveryCodes =
  ({ changeLog, secondFactors }: Deps): Methods<IdentityServiceService>['listRecoveryCodes'] =>
  async ({ code }, context) => {
    let codes: readonly string[] = []
    const { stored } = await writeWithCode(changeLog, context, async (tx) => {
      const stored = verifiedFactor(await lockSecondFactor(tx, context.caller.identityId))
      const factor = await secondFactors.useCode(tx, stored, code, 'app')
      if (!factor) return undefined
      codes = factor.recoveryCodes
      return { stored, changes: [await secondFactors.save(tx, stored, factor)] }
    })
    const times = { createdAtMs: stored.createdAt.getTime(), updatedAtMs: stored.updatedAt.getTime() }
    return { id: stored.id, codes: [...codes], ...times }
  }
