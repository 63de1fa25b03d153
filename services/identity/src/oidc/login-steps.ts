import { timingSafeEqual } from 'node:crypto'
import { isUuid } from '@overlay/model'
import { type Context, Fault, type LoginState, type PresentCodeRequest } from '@overlay/rpc'
import { isComplete, loginQueries, missingOf } from '../domain/oidc-login.js'
import { refuseLogin } from '../login/refusals.js'
import { type AcceptedCode, writeWithCode } from '../mfa/codes.js'
import { touchIdentity } from '../store/identities.js'
import { browserDigestOf, loginById, passSecondFactor, type StoredLogin } from '../store/oidc-logins.js'
import type { StoredFactor } from '../store/second-factors.js'
import { asIdentity } from './end-session.js'
import type { OidcDeps } from './oidc-deps.js'

interface Ref {
  readonly id: string
  readonly browser: string
}

/** A login that is not finished, for callers who may continue it. */
export async function loginOf(
  { changeLog }: Pick<OidcDeps, 'changeLog'>,
  ref: Ref,
): Promise<StoredLogin | undefined> {
  const login = isUuid(ref.id) ? await loginById(changeLog.db, ref.id) : undefined
  return login && mayContinue(login, ref.browser) ? login : undefined
}

/** The same; NOT_FOUND if there is none. */
export async function findLogin(deps: Pick<OidcDeps, 'changeLog'>, ref: Ref): Promise<StoredLogin> {
  const login = await loginOf(deps, ref)
  if (!login) throw new Fault('NOT_FOUND')
  return login
}

/** A login whose first factor has been accepted. */
export type IdentifiedLogin = StoredLogin & { readonly identityId: string }

export const isIdentified = (login: StoredLogin | undefined): login is IdentifiedLogin =>
  login?.isIdentified === true && login.identityId !== null

export function loginState(login: StoredLogin): LoginState {
  const { isIdentified } = login
  const none = { needsCode: false, needsEnrollment: false, needsToken: false }
  return {
    id: login.id,
    clientId: login.clientId,
    redirectUri: login.redirectUri,
    state: login.state,
    isIdentified,
    isComplete: isComplete(login),
    ...(isIdentified ? missingOf(login) : none),
    authQueries: Buffer.from(JSON.stringify(isIdentified ? loginQueries(login) : [])),
  }
}

/**
 * Whether the caller may continue the login. The id is in addresses, and an attacker who sends a link to a login knows
 * it: the steps after the first factor are open only to the browser that presented it. A client that is no browser
 * follows no links, and its address may change between two steps.
 */
export function mayContinue(login: StoredLogin, browser: string): boolean {
  if (!login.isIdentified || login.browserDigest === null) return true
  const presented = browserDigestOf(browser)
  return presented !== null && timingSafeEqual(presented, login.browserDigest)
}

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
