import { waitText } from '@overlay/rpc'
import { type Dialogue, type Fragment, fragment, renderAlert } from '../http/html.js'

/** A provider of external tokens, as the page offers it. */
export interface ExternalProvider {
  readonly name: string
  /** Where its users log in. Empty: unknown. */
  readonly url: string
}

export type LoginMethod = 'password' | 'cert' | 'ext-jwt'

/** The first step: one of three credentials, the requested one at the top. */
export function loginPage(
  id: string,
  method: LoginMethod,
  providers: readonly ExternalProvider[],
  error?: string,
): Dialogue {
  const sections = {
    password: passwordForm(id, method === 'password'),
    cert: certificateForm(id),
    'ext-jwt': tokenForm(id, providers, method === 'ext-jwt'),
  }
  const { [method]: first, ...others } = sections
  return {
    title: 'Sign in',
    content: fragment`${renderAlert(error)}${first}${Object.values(others)}`,
  }
}

export const refusedLogin =
  'Sign-in failed. Check your input and try again. If it fails again, return to your application and start over.'

export const tooMany = (seconds: number): string =>
  `Too many attempts. Wait ${waitText(seconds)}, then go back and try again.`

/** The id finds the line that names the address. The page does not: anybody may have written it. */
export const unregistered = (setting: string, requestId: string): string =>
  `The address to which your application wants to return is not registered. Ask your administrator to add it to ${setting}: the log of the gateway has it, with request id ${requestId}.`

const passwordForm = (
  id: string,
  isFirst: boolean,
): Fragment => fragment`<form method="post" action="/oidc/login/password">
${hidden(id)}<label for="username">User name</label>
<input id="username" name="username" autocomplete="username" autocapitalize="none" spellcheck="false" required${focus(isFirst)}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button>Sign in</button>
</form>
`

const certificateForm = (id: string): Fragment => fragment`<h2>Certificate</h2>
<p>Your browser presents the certificate that you selected when it connected.</p>
<form method="post" action="/oidc/login/cert">
${hidden(id)}<button>Sign in with a certificate</button>
</form>
`

const tokenForm = (
  id: string,
  providers: readonly ExternalProvider[],
  isFirst: boolean,
): Fragment => fragment`<h2>Token of another provider</h2>
${providerList(providers)}<form method="post" action="/oidc/login/ext-jwt">
${hidden(id)}<label for="token">Token</label>
<textarea id="token" name="token" rows="4" autocomplete="off" autocapitalize="none" spellcheck="false" required${focus(isFirst)}></textarea>
<button>Sign in with a token</button>
</form>
`

/** Addresses with another scheme could run scripts. */
const isWebAddress = (url: string): boolean => /^https?:\/\//i.test(url)

function providerList(providers: readonly ExternalProvider[]): Fragment {
  if (providers.length === 0) return fragment``
  const items = providers.map(({ name, url }) =>
    isWebAddress(url)
      ? fragment`<li><a href="${url}" target="_blank" rel="noopener noreferrer">${name}</a></li>\n`
      : fragment`<li>${name}</li>\n`,
  )
  return fragment`<p>Get a token from:</p>
<ul>
${items}</ul>
`
}

/** The second step, if a code is missing. */
export const codePage = (id: string, action: 'totp' | 'totp/enroll/verify', error?: string): Dialogue => ({
  title: 'Enter a code',
  content: fragment`${renderAlert(error)}<p>${
    action === 'totp'
      ? 'Your authenticator app shows it. A recovery code works too, once.'
      : 'Your authenticator app shows it.'
  }</p>
${codeForm(id, action)}`,
})

export const refusedCode = 'The code is not valid. Enter the code that your app shows now.'

const codeForm = (
  id: string,
  action: string,
): Fragment => fragment`<form method="post" action="/oidc/login/${action}">
${hidden(id)}<label for="code">Code</label>
<input id="code" name="code" autocomplete="one-time-code" autocapitalize="none" spellcheck="false" maxlength="64" required autofocus>
<button>Continue</button>
</form>
`

/** Before the second factor exists, if the auth policy demands it. */
export const enrollmentPage = (id: string): Dialogue => ({
  title: 'A second factor is required',
  content: fragment`<p>You need an authenticator app on your phone or computer. It shows a code that you will enter after each sign-in.</p>
<form method="post" action="/oidc/login/totp/enroll">
${hidden(id)}<button autofocus>Set up an authenticator app</button>
</form>
`,
})

/** @param image address of the picture of `provisioningUrl`, with the data in it */
export function newFactorPage(
  id: string,
  image: string,
  provisioningUrl: string,
  recoveryCodes: readonly string[],
): Dialogue {
  const secret = URL.canParse(provisioningUrl) ? new URL(provisioningUrl).searchParams.get('secret') : null
  return {
    title: 'Set up an authenticator app',
    content: fragment`<ol>
<li>Scan this picture with the app.
<img src="${image}" width="256" height="256" alt="QR code of the secret">
If you cannot, enter the secret: <code>${secret ?? provisioningUrl}</code></li>
<li>Keep these recovery codes in a safe place. Each works once, without the app. They are not shown again.
<ul class="box codes">
${recoveryCodes.map((code) => fragment`<li><code>${code}</code></li>\n`)}</ul></li>
<li>Enter the code that the app shows.</li>
</ol>
${codeForm(id, 'totp/enroll/verify')}`,
  }
}

/** The second step, if an external token is missing. */
export const tokenPage = (id: string, providers: readonly ExternalProvider[], error?: string): Dialogue => ({
  title: 'A token is required',
  content: fragment`${renderAlert(error)}<p>Sign in to the provider as well, and enter its token.</p>
${tokenForm(id, providers, true)}`,
})

/** A page without a next step. */
export const messagePage = (title: string, text: string, status: number): Dialogue => ({
  title,
  content: fragment`<p>${text}</p>`,
  status,
})

const hidden = (id: string): Fragment => fragment`<input type="hidden" name="id" value="${id}">\n`

const focus = (isFirst: boolean): Fragment => (isFirst ? fragment` autofocus` : fragment``)
