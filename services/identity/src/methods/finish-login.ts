import { randomBytes } from 'node:crypto'
import { Fault, type Methods, type OidcServiceService } from '@overlay/rpc'
import { isComplete } from '../domain/oidc-login.js'
import { findLogin } from '../oidc/find-login.js'
import { loginState } from '../oidc/login-state.js'
import type { OidcDeps } from '../oidc/oidc-deps.js'
import { finishLogin as finish } from '../store/oidc-logins.js'

export const finishLogin =
  (deps: OidcDeps): Methods<OidcServiceService>['finishLogin'] =>
  async (ref) => {
    const login = await findLogin(deps, ref)
    if (!isComplete(login)) return { login: loginState(login), code: '' }
    const code = randomBytes(32).toString('base64url')
    if (!(await finish(deps.changeLog.db, login, code))) throw new Fault('NOT_FOUND')
    return { login: loginState(login), code }
  }
