import { timingSafeEqual } from 'node:crypto'
import { type Context, type LoginState, sourceOf } from '@overlay/rpc'
import { isComplete, loginQueries, missingOf } from '../domain/oidc-login.js'
import { browserDigestOf, type Presenter, type StoredLogin } from '../store/oidc-logins.js'

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

export const presenterOf = (
  { sourceAddress }: Context,
  { browser }: { readonly browser: string },
): Presenter => ({
  source: sourceOf(sourceAddress),
  browser,
})

/**
 * Whether the caller may continue the login. The id is in addresses, and whoever sends a link to a login of his own
 * knows it: the steps after the first factor are open only to the network and the browser that presented it.
 */
export function mayContinue(login: StoredLogin, { source, browser }: Presenter): boolean {
  if (!login.isIdentified) return true
  if (login.presentedFrom !== source) return false
  const presented = browserDigestOf(browser)
  if (login.browserDigest === null) return true
  return presented !== null && timingSafeEqual(presented, login.browserDigest)
}
