import { Fault, faults, fieldOf } from '@overlay/rpc'
import { retryAfterOf } from '../http/envelope.js'
import type { Protocol, RequestContext } from '../http/exchange.js'
import { sendDialogue } from '../http/html.js'
import { contentTypeOf, hasBody } from '../http/negotiate.js'
import { checkQuery } from '../http/query.js'
import { forbidStoring, JSON_HEADERS } from '../http/send.js'
import { write } from '../http/write.js'
import { loginTypes } from './login-body.js'
import { messagePage, tooMany, unregistered } from './pages.js'
import { redirectSettings } from './provider.js'
import { answerTypeOf, isBrowser } from './requests.js'

const TEXT_TYPE = 'text/plain; charset=utf-8'

/** JSON without an envelope, which no cache may keep. */
export function sendJson(c: RequestContext, status: number, value: object): Response {
  forbidStoring(c)
  return write(c, status, JSON_HEADERS, JSON.stringify(value))
}

export const plainText = (c: RequestContext, status: number, text: string): Response =>
  write(c, status, { 'content-type': TEXT_TYPE, 'x-content-type-options': 'nosniff' }, `${text}\n`)

/** A failure that the protocol defines. Unlike the description, `error` is part of it. */
export class OauthRefusal extends Fault {
  constructor(
    readonly error: string,
    readonly description = '',
    status: 400 | 401 = error === 'invalid_client' ? 401 : 400,
  ) {
    super(status === 401 ? 'INVALID_AUTH' : 'COULD_NOT_VALIDATE', description)
  }
}

/** A failure as the token endpoint and its neighbours answer it. */
export function oauthFailure(c: RequestContext, fault: Fault): Response {
  const status = faults[fault.code][0]
  const { error, description } =
    fault instanceof OauthRefusal
      ? fault
      : { error: errorOf(status), description: status < 500 ? publicText(fault) : fault.message }
  const retryAfter = retryAfterOf(fault)
  if (retryAfter !== undefined) c.env.outgoing.setHeader('retry-after', retryAfter)
  const body = { error, ...(description && { error_description: description }) }
  // a browser must not ask its user: only clients that used the header learn that it is one
  if (status === 401 && c.env.incoming.headers.authorization !== undefined)
    c.env.outgoing.setHeader('www-authenticate', 'Basic realm="oidc"')
  return sendJson(c, status, body)
}

const errorOf = (status: number): string =>
  status === 429 || status === 503
    ? 'temporarily_unavailable'
    : status >= 500
      ? 'server_error'
      : 'invalid_request'

/** What a client learns of a failure: the reason, never the value. */
export function publicText({ detail, message }: Fault): string {
  if (typeof detail === 'string') return detail || message
  return detail && 'reason' in detail ? detail.reason : message
}

/** Requests and failures of the provider. Login steps, endpoints for programs, and the rest differ in both. */
export const oidcProtocol: Protocol = {
  // differs: other types are refused, not answered with nothing
  check(c, { body }) {
    checkQuery(c, [])
    if (!body || !isLoginStep(c)) return
    const { incoming } = c.env
    if (hasBody(incoming) && !loginTypes.includes(contentTypeOf(incoming)))
      throw new Fault('UNSUPPORTED_MEDIA_TYPE')
    answerTypeOf(incoming)
  },
  refuse(c, fault) {
    if (programs.has(c.env.path)) return oauthFailure(c, fault)
    const status = faults[fault.code][0]
    if (isBrowser(c.env.incoming)) return sendDialogue(c, messagePage('Sign-in', pageText(c, fault), status))
    if (isLoginStep(c) && c.env.incoming.method === 'POST' && fault.code !== 'NOT_FOUND')
      return sendJson(c, status, { code: fault.code, message: publicText(fault) })
    return plainText(c, status, status < 500 ? publicText(fault) : fault.message)
  },
}

const programs = new Set(['/oidc/oauth/token', '/oidc/oauth/introspect', '/oidc/revoke', '/oidc/end_session'])

const isLoginStep = (c: RequestContext): boolean => c.env.path.startsWith('/oidc/login/')

function pageText({ env }: RequestContext, fault: Fault): string {
  const status = faults[fault.code][0]
  if (status === 429) return tooMany(Number(retryAfterOf(fault)))
  const field = fieldOf(fault) ?? ''
  if (isRedirectParameter(field)) return unregistered(redirectSettings[field], env.requestId)
  return status >= 500
    ? 'The controller cannot answer at present. Try again later.'
    : 'This sign-in cannot continue. Return to your application and start over.'
}

const isRedirectParameter = (field: string): field is keyof typeof redirectSettings =>
  Object.hasOwn(redirectSettings, field)
