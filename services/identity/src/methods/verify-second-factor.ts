import type { Methods, OidcServiceService } from '@overlay/rpc'
import { missingOf } from '../domain/oidc-login.js'
import { unverifiedFactor } from '../mfa/codes.js'
import type { OidcDeps } from '../oidc/oidc-deps.js'
import { useLoginCode } from '../oidc/use-login-code.js'

/** differs: works, and completes the login. */
export const verifySecondFactor =
  (deps: OidcDeps): Methods<OidcServiceService>['verifySecondFactor'] =>
  async (request, context) =>
    useLoginCode(deps, request, context, {
      accepted: 'app',
      accepts: (login) => missingOf(login).needsEnrollment,
      requires: unverifiedFactor,
      isVerified: false,
    })
