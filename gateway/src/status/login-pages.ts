import { Fault } from '@overlay/rpc'
import type { CachedSession } from '../cache/session.js'
import type { Sessions } from '../cache/sessions.js'
import type { RequestContext } from '../http/exchange.js'
import { type Dialogue, fragment, renderAlert } from '../http/html.js'
import { IDLE_MINUTES } from '../limits.js'

/** The prefix keeps pages without TLS from setting it. */
const NAME = '__Secure-status'
const cookie = new RegExp(`(?:^|;\\s*)${NAME}=([\\w-]{36})(?:;|$)`)
const ATTRIBUTES = 'Path=/status; Secure; HttpOnly; SameSite=Strict'

/** The API session that a login on the page has opened. */
export async function browserSession(
  c: RequestContext,
  sessions: Pick<Sessions, 'find'>,
): Promise<{ readonly session: CachedSession; readonly token: string } | 'none' | 'ended'> {
  const token = cookie.exec(c.env.incoming.headers.cookie ?? '')?.[1]
  if (token === undefined) return 'none'
  try {
    return { session: await sessions.find({ token, bearers: [] }), token }
  } catch (err) {
    if (!(err instanceof Fault && err.code === 'UNAUTHORIZED')) throw err
    dropToken(c)
    return 'ended'
  }
}

/** Gives a browser the token, or prolongs its time. */
export const keepToken = (c: RequestContext, token: string): void =>
  void c.env.outgoing.setHeader('set-cookie', `${NAME}=${token}; Max-Age=${IDLE_MINUTES * 60}; ${ATTRIBUTES}`)

export const dropToken = (c: RequestContext): void =>
  void c.env.outgoing.setHeader('set-cookie', `${NAME}=; Max-Age=0; ${ATTRIBUTES}`)

export const refusedLogin = 'Sign-in failed. Check your input and try again.'

export const endedSession = `Your session has ended, or the page was not opened for ${IDLE_MINUTES} minutes. Sign in again.`

/** The first step: one of two credentials. */
export const loginPage = (error?: string, status = 200): Dialogue => ({
  title: 'Status: sign in',
  status,
  content: fragment`${renderAlert(error)}<p>The status of the controller is for administrators.</p>
<form method="post" action="/status/login">
<label for="username">User name</label>
<input id="username" name="username" autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button name="method" value="password">Sign in</button>
</form>
<h2>Certificate</h2>
<p>Your browser presents the certificate that you selected when it connected.</p>
<form method="post" action="/status/login">
<button name="method" value="cert">Sign in with a certificate</button>
</form>`,
})

/** The second step, if the session lacks a code. */
export const codePage = (error?: string, status = 200): Dialogue => ({
  title: 'Status: enter a code',
  status,
  content: fragment`${renderAlert(error)}<p>Your authenticator app shows it. A recovery code works too, once.</p>
<form method="post" action="/status/code">
<label for="code">Code</label>
<input id="code" name="code" autocomplete="one-time-code" autocapitalize="none" spellcheck="false" maxlength="64" required autofocus>
<button>Continue</button>
</form>
<form method="post" action="/status/logout"><button>Cancel</button></form>`,
})

/** The end of a sign-in that leads nowhere, with the reason. */
export const refusedPage = (reason: string, status: number): Dialogue => ({
  title: 'Status: refused',
  status,
  content: fragment`${renderAlert(reason)}<p><a href="/status">Sign in</a></p>`,
})
