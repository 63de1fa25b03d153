import type { Methods, OidcServiceService } from '@overlay/rpc'
import type { OidcDeps } from '../oidc/oidc-deps.js'
import { endSession } from './end-session.js'
import { enrollSecondFactor } from './enroll-second-factor.js'
import { finishLogin } from './finish-login.js'
import { getLogin } from './get-login.js'
import { getTokens } from './get-tokens.js'
import { presentCode } from './present-code.js'
import { presentCredential } from './present-credential.js'
import { revokeToken } from './revoke-token.js'
import { startLogin } from './start-login.js'
import { verifySecondFactor } from './verify-second-factor.js'

/** All methods of logins by OpenID Connect. */
export const oidcMethods = (deps: OidcDeps): Methods<OidcServiceService> => ({
  endSession: endSession(deps),
  enrollSecondFactor: enrollSecondFactor(deps),
  finishLogin: finishLogin(deps),
  getLogin: getLogin(deps),
  getTokens: getTokens(deps),
  presentCode: presentCode(deps),
  presentCredential: presentCredential(deps),
  revokeToken: revokeToken(deps),
  startLogin: startLogin(deps),
  verifySecondFactor: verifySecondFactor(deps),
})
