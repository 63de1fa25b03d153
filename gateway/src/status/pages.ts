import { type Dialogue, type Fragment, fragment } from '../http/html.js'
import { IDLE_MINUTES } from './cookie.js'

export const refusedLogin = 'Sign-in failed. Check your input and try again.'

export const endedSession = `Your session has ended, or the page was not opened for ${IDLE_MINUTES} minutes. Sign in again.`

/** The first step: one of two credentials. */
export const loginPage = (error?: string, status = 200): Dialogue => ({
  title: 'Status: sign in',
  status,
  content: fragment`${alert(error)}<p>The status of the controller is for administrators.</p>
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
  content: fragment`${alert(error)}<p>Your authenticator app shows it. A recovery code works too, once.</p>
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
  content: fragment`${alert(reason)}<p><a href="/status">Sign in</a></p>`,
})

const alert = (error: string | undefined): Fragment =>
  error === undefined ? fragment`` : fragment`<p class="box alert" role="alert">${error}</p>\n`
