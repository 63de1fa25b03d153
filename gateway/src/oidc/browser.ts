import { randomBytes } from 'node:crypto'
import type { RequestContext } from '../http/exchange.js'

/** The prefix keeps other hosts from setting it. */
const NAME = '__Host-login'
const cookie = new RegExp(`(?:^|;\\s*)${NAME}=([\\w-]{22})(?:;|$)`)
const MAX_AGE_SECONDS = 3600

/** The secret of the browser. Empty: the client is none, or its cookie has expired. */
export const browserOf = ({ env: { incoming } }: RequestContext): string =>
  cookie.exec(incoming.headers.cookie ?? '')?.[1] ?? ''

/**
 * Gives a browser a secret, or prolongs the one that it has. The id of a login is in addresses: without the secret, an
 * attacker who sends a link to a login could finish it in place of its user. The secret identifies nothing else.
 */
export function keepBrowser(c: RequestContext): void {
  const value = browserOf(c) || randomBytes(16).toString('base64url')
  const attributes = `Path=/; Max-Age=${MAX_AGE_SECONDS}; Secure; HttpOnly; SameSite=Lax`
  c.env.outgoing.setHeader('set-cookie', `${NAME}=${value}; ${attributes}`)
}

/**
 * Whether a page of another site may have sent the request. Browsers then leave the cookie out, but not the certificate
 * of the connection.
 */
export function mayBeForeign({ env: { incoming } }: RequestContext): boolean {
  const { origin, 'sec-fetch-site': site } = incoming.headers
  return site === undefined ? origin !== undefined : site !== 'same-origin'
}
