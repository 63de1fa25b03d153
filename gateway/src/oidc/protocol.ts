import { Fault, faults, fieldOf } from '@overlay/rpc'
import { retryAfterOf } from '../http/answer.js'
import type { Protocol, RequestContext } from '../http/exchange.js'
import { sendDialogue } from '../http/html.js'
import { contentTypeOf, hasBody } from '../http/negotiate.js'
import { checkQuery } from '../http/query.js'
import { loginTypes } from './login-body.js'
import { answerTypeOf, isBrowser } from './negotiate.js'
import { messagePage, tooMany, unregistered } from './pages.js'
import { redirectSettings } from './provider.js'
import { oauthFailure, publicText } from './refusals.js'
import { plainText, sendJson } from './send.js'

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
