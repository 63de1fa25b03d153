import { Fault, faults } from '@overlay/rpc'
import { retryAfterOf } from '../http/answer.js'
import type { RequestContext } from '../http/exchange.js'
import { sendJson } from './send.js'

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
