import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { newRecoveryCodes } from '../domain/second-factor.js'
import { verifiedFactor, writeWithCode } from '../mfa/codes.js'
import { lockSecondFactor } from '../store/second-factors.js'
import type { Deps } from './deps.js'

export const renewRecoveryCodes =
  ({ changeLog, secondFactors }: Deps): Methods<IdentityServiceService>['renewRecoveryCodes'] =>
  async ({ code }, context) => {
    const { stored, position } = await writeWithCode(changeLog, context, async (tx) => {
      const stored = verifiedFactor(await lockSecondFactor(tx, context.caller.identityId))
      const factor = await secondFactors.useCode(tx, stored, code, 'any')
      if (!factor) return undefined
      const renewed = { ...factor, recoveryCodes: newRecoveryCodes() }
      return { stored, changes: [await secondFactors.save(tx, stored, renewed)] }
    })
    return { id: stored.id, position }
  }
