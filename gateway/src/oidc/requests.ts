import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Fault, invalid } from '@overlay/rpc'
import type { RequestContext } from '../http/exchange.js'
import { accepts, contentTypeOf, hasBody } from '../http/negotiate.js'
import { queryOf } from '../http/query.js'
import { LOGIN_COOKIE_SECONDS } from '../limits.js'

export const FORM_TYPE = 'application/x-www-form-urlencoded'

/** Parameters that may have several values. */
const lists = new Set(['configTypes', 'resource', 'audience'])

/**
 * The parameters of a body. wire: a body of another type counts as empty.
 * @throws Fault if one has several values or contains NUL, unless it is among those without a meaning
 */
export function formOf(c: RequestContext, bytes: Buffer, unused: readonly string[] = []): URLSearchParams {
  const { incoming } = c.env
  const form = new URLSearchParams(isForm(incoming) && bytes.length > 0 ? bytes.toString() : '')
  if (unused.length === 0) return checked(form)
  // `delete` takes quadratic time
  return checked(new URLSearchParams([...form].filter(([name]) => !unused.includes(name))))
}

/** The parameters of query and body together, which must not repeat each other. */
export function parametersOf(c: RequestContext, bytes: Buffer): URLSearchParams {
  return checked(new URLSearchParams([...queryOf(c), ...formOf(c, bytes)]))
}

export const queryParametersOf = (c: RequestContext): URLSearchParams => checked(queryOf(c))

const isForm = (incoming: RequestContext['env']['incoming']): boolean =>
  hasBody(incoming) && contentTypeOf(incoming) === FORM_TYPE

function checked(parameters: URLSearchParams): URLSearchParams {
  const names = new Set<string>()
  for (const [name, value] of parameters) {
    // differs: a proxy or a client could read another one than we do
    if (names.has(name) && !lists.has(name)) throw invalid(name, 'a parameter is given more than once')
    // Postgres cannot store NUL in text
    if (value.includes('\0')) throw new Fault('COULD_NOT_VALIDATE', 'a parameter contains NUL')
    names.add(name)
  }
  return parameters
}

/** The value of a parameter. wire: an empty one counts as absent. */
export const parameterOf = (parameters: URLSearchParams, name: string): string | undefined =>
  parameters.get(name) || undefined

/** An id of a login, as it may come back in a header. Anything else names no login. */
export const loginIdOf = (text: string | null | undefined): string =>
  text && /^[\w-]{1,64}$/.test(text) ? text : ''

const answers: Readonly<Record<string, 'json' | 'html'>> = {
  'application/json': 'json',
  'text/html': 'html',
  // differs: any type is JSON, not an empty answer
  '*/*': 'json',
  'application/*': 'json',
  'text/*': 'html',
}

/**
 * What a login step answers. wire: the first type counts that is known, whatever its weight.
 * @throws Fault NOT_ACCEPTABLE
 */
export function answerTypeOf({ headers: { accept = '' } }: IncomingMessage): 'json' | 'html' {
  if (accept.trim() === '') return 'json'
  for (const range of accept.split(',')) {
    const answer = answers[range.split(';')[0]?.trim().toLowerCase() ?? '']
    if (answer) return answer
  }
  throw new Fault('NOT_ACCEPTABLE')
}

/** Whether a person reads the response. */
export const isBrowser = (incoming: IncomingMessage): boolean => accepts(incoming, 'text/html')

/** The prefix keeps other hosts from setting it. */
const NAME = '__Host-login'
const cookie = new RegExp(`(?:^|;\\s*)${NAME}=([\\w-]{22})(?:;|$)`)

/** The secret of the browser. Empty: the client is none, or its cookie has expired. */
export const browserOf = ({ env: { incoming } }: RequestContext): string =>
  cookie.exec(incoming.headers.cookie ?? '')?.[1] ?? ''

/**
 * Gives a browser a secret, or prolongs the one that it has. The id of a login is in addresses: without the secret, an
 * attacker who sends a link to a login could finish it in place of its user. The secret identifies nothing else.
 */
export function keepBrowser(c: RequestContext): void {
  const value = browserOf(c) || randomBytes(16).toString('base64url')
  const attributes = `Path=/; Max-Age=${LOGIN_COOKIE_SECONDS}; Secure; HttpOnly; SameSite=Lax`
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
