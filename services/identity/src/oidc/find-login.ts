import { isUuid } from '@overlay/model'
import { Fault } from '@overlay/rpc'
import { loginById, type StoredLogin } from '../store/oidc-logins.js'
import { mayContinue } from './login-state.js'
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
