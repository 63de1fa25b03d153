import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { provisioningUrl } from '../domain/second-factor.js'
import { factorOf } from '../mfa/codes.js'
import { lockSecondFactor } from '../store/second-factors.js'
import type { Deps } from './deps.js'

/** The second factor of the caller, with its secret until it is verified. */
export const getMfa =
  ({
    changeLog: { db },
    secondFactors,
    totpIssuer,
  }: Pick<Deps, 'changeLog' | 'secondFactors' | 'totpIssuer'>): Methods<IdentityServiceService>['getMfa'] =>
  async (_request, { caller, deadline }) => {
    const stored = factorOf(await db.transaction(deadline, (tx) => lockSecondFactor(tx, caller.identityId)))
    const { id, isVerified, identityName } = stored
    const times = { createdAtMs: stored.createdAt.getTime(), updatedAtMs: stored.updatedAt.getTime() }
    if (isVerified) return { id, isVerified, provisioningUrl: '', recoveryCodes: [], ...times }
    const { secret, recoveryCodes } = secondFactors.open(stored)
    const url = provisioningUrl(secret, totpIssuer, identityName)
    return { id, isVerified, provisioningUrl: url, recoveryCodes: [...recoveryCodes], ...times }
  }
