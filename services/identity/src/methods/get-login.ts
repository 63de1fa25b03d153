import type { Methods, OidcServiceService } from '@overlay/rpc'
import { findLogin } from '../oidc/find-login.js'
import { loginState } from '../oidc/login-state.js'
import type { OidcDeps } from '../oidc/oidc-deps.js'

export const getLogin =
  (deps: OidcDeps): Methods<OidcServiceService>['getLogin'] =>
  async (ref) =>
    loginState(await findLogin(deps, ref))
