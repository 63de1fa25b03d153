import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { verifiedFactor, writeWithCode } from '../mfa/codes.js'
import type { Deps } from './deps.js'

/** The unused recovery codes of the caller, for a code of the app. */
export const listRecoveryCodes =
  (deps: Deps): Methods<IdentityServiceService>['listRecoveryCodes'] =>
  async ({ code }, context) => {
    const use = { code, accepted: 'app', requires: verifiedFactor } as const
    const { stored, factor } = await writeWithCode(deps, context, use)
    const times = { createdAtMs: stored.createdAt.getTime(), updatedAtMs: stored.updatedAt.getTime() }
    return { id: stored.id, codes: [...factor.recoveryCodes], ...times }
  }
