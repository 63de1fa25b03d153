import { type Context, Fault, type LoginState, type PresentCodeRequest } from '@overlay/rpc'
import { refuseLogin } from '../login/refuse-login.js'
import { type AcceptedCode, writeWithCode } from '../mfa/codes.js'
import { touchIdentity } from '../store/identities.js'
import { passSecondFactor, type StoredLogin } from '../store/oidc-logins.js'
import type { StoredFactor } from '../store/second-factors.js'
import { asIdentity } from './as-identity.js'
import { findLogin, isIdentified, loginOf } from './find-login.js'
import { loginState } from './login-state.js'
import type { OidcDeps } from './oidc-deps.js'

interface CodeRules {
  readonly accepted: AcceptedCode
  /** Whether the login asks for this code. */
  readonly accepts: (login: StoredLogin) => boolean
  readonly requires: (stored: StoredFactor | undefined) => StoredFactor
  /** Whether the factor has been verified before. */
  readonly isVerified: boolean
}

/** Uses a code for a login: MFA_INVALID_TOKEN whatever the reason, also for a login that does not ask for one. */
export async function useLoginCode(
  deps: OidcDeps,
  request: PresentCodeRequest,
  context: Context,
  { accepted, accepts, requires, isVerified }: CodeRules,
): Promise<LoginState> {
  const login = await loginOf(deps, request)
  if (!isIdentified(login) || !accepts(login)) {
    refuseLogin(deps.noteRefusal, context, { method: 'totp', reason: 'not asked for' })
    throw new Fault('MFA_INVALID_TOKEN')
  }
  const { identityId } = login
  const use = { code: request.code, accepted, requires: orRefused(requires) }
  await writeWithCode(deps, asIdentity(context, login), use, async (tx, factor, save) => {
    if (!(await passSecondFactor(tx, login.id, identityId, { code: true })))
      throw new Fault('MFA_INVALID_TOKEN')
    if (isVerified) return [await save(factor)]
    const shown = await touchIdentity(tx, identityId)
    return [...(shown ? [shown] : []), await save(factor, true)]
  })
  return loginState(await findLogin(deps, request))
}

const orRefused =
  (requires: CodeRules['requires']): CodeRules['requires'] =>
  (stored) => {
    try {
      return requires(stored)
    } catch (cause) {
      throw new Fault('MFA_INVALID_TOKEN', undefined, cause)
    }
  }
