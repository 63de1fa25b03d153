import { timingSafeEqual } from 'node:crypto'
import type { LoginState } from '@overlay/rpc'
import { isComplete, loginQueries, missingOf } from '../domain/oidc-login.js'
import { browserDigestOf, type StoredLogin } from '../store/oidc-logins.js'

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
