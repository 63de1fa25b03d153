import type { Methods, OidcServiceService } from '@overlay/rpc'
import { missingOf } from '../domain/oidc-login.js'
import { verifiedFactor } from '../mfa/codes.js'
import type { OidcDeps } from '../oidc/oidc-deps.js'
import { useLoginCode } from '../oidc/use-login-code.js'

/** differs: a factor that is not verified is not asked for, and its codes are refused. */
export const presentCode =
  (deps: OidcDeps): Methods<OidcServiceService>['presentCode'] =>
  async (request, context) =>
    useLoginCode(deps, request, context, {
      accepted: 'any',
      accepts: (login) => missingOf(login).needsCode && login.hasVerifiedFactor,
      requires: verifiedFactor,
      isVerified: true,
    })
