import { Fault, type Methods, type OidcServiceService } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { newId } from '@overlay/store/kind-store'
import { missingOf } from '../domain/oidc-login.js'
import { newSecondFactor } from '../domain/second-factor.js'
import { asIdentity } from '../oidc/as-identity.js'
import { findLogin, isIdentified } from '../oidc/find-login.js'
import type { OidcDeps } from '../oidc/oidc-deps.js'
import { insertSecondFactor, lockSecondFactor, removeSecondFactor } from '../store/second-factors.js'
import { getMfa } from './get-mfa.js'

/**
 * Creates the second factor that the auth policy demands. An unverified one is replaced, because others may have seen its
 * secret.
 */
export const enrollSecondFactor =
  (deps: OidcDeps): Methods<OidcServiceService>['enrollSecondFactor'] =>
  async (ref, context) => {
    const login = await findLogin(deps, ref)
    if (!isIdentified(login)) throw new Fault('NOT_FOUND')
    if (login.hasVerifiedFactor) throw new Fault('MFA_EXISTS')
    if (!missingOf(login).needsEnrollment) throw new Fault('NOT_FOUND')
    const { identityId } = login
    const by = asIdentity(context, login)
    await writeChanges(deps.changeLog, by, async (tx) => {
      if ((await lockSecondFactor(tx, identityId))?.isVerified) throw new Fault('MFA_EXISTS')
      const removed = await removeSecondFactor(tx, identityId)
      const sealed = deps.secondFactors.seal(identityId, newSecondFactor())
      const inserted = await insertSecondFactor(tx, { id: newId('short'), identityId, sealed })
      if (!inserted) throw new Fault('MFA_EXISTS')
      return [...removed, inserted]
    })
    return getMfa(deps)({}, by)
  }
