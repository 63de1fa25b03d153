import type { OutgoingHttpHeaders } from 'node:http'
import type { RequestContext } from './exchange.js'
import { CREDENTIAL_HEADERS, expirationSeconds } from './session.js'

/** Returned by handlers: the response is written, or is being streamed. Hono wants an object, and reads nothing of it. */
export const SENT = Object.freeze({}) as unknown as Response

/**
 * Writes a response, unless the request has one: a late call must not change the response to a request that has timed
 * out. `null` is no body at all.
 * @param vary what the form of the response depends on, besides its session
 */
export function write(
  c: RequestContext,
  status: number,
  headers: OutgoingHttpHeaders,
  body: string | Uint8Array | null,
  vary?: string,
): Response {
  const { incoming, outgoing } = c.env
  const hasLength = body !== null && incoming.method !== 'HEAD'
  const length = hasLength ? { 'content-length': Buffer.byteLength(body) } : {}
  if (writeHead(c, status, { ...headers, ...length }, vary)) outgoing.end(body ?? undefined)
  return SENT
}

/**
 * Writes status and headers of a response whose body follows. False: the request has a response already.
 * wire: the response to a valid session reports its expiry. differs: a cache must not show it to others.
 */
export function writeHead(
  { env: { outgoing, head, reportedSession: session } }: RequestContext,
  status: number,
  headers: OutgoingHttpHeaders,
  vary?: string,
): boolean {
  if (outgoing.headersSent) return false
  const expiry = session && {
    'expiration-seconds': expirationSeconds(session),
    'expires-at': session.expiresAt,
    vary: CREDENTIAL_HEADERS,
  }
  outgoing.writeHead(status, { ...head, ...headers, ...expiry, ...(vary !== undefined && { vary }) })
  return true
}

/** Sets a header of the response, unless it has been sent. */
export function addHeader({ env }: RequestContext, name: string, value: string): void {
  env.head = { ...env.head, [name]: value }
}
