import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { newRecoveryCodes } from '../domain/second-factor.js'
import { verifiedFactor, writeWithCode } from '../mfa/codes.js'
import type { Deps } from './deps.js'

export const renewRecoveryCodes =
  (deps: Deps): Methods<IdentityServiceService>['renewRecoveryCodes'] =>
  async ({ code }, context) => {
    const use = { code, accepted: 'any', requires: verifiedFactor } as const
    const { stored, position } = await writeWithCode(deps, context, use, async (_tx, factor, save) => [
      await save({ ...factor, recoveryCodes: newRecoveryCodes() }),
    ])
    return { id: stored.id, position }
  }
