import type { Exchange, RequestContext } from './exchange.js'
import { CREDENTIAL_HEADERS, expirationSeconds } from './session.js'

/** Returned by handlers: the answer is written, or its parts are on their way. Hono wants an object, and reads nothing of it. */
export const SENT = Object.freeze({}) as unknown as Response

/** Headers as pairs of name and value. */
export type Pairs = readonly string[]

/**
 * Writes an answer, unless the request has got one: a late call must not change the answer to a request that has timed
 * out. `null` is no body at all.
 * @param vary what the form of the answer depends on, beside its session
 */
export function write(
  { env }: RequestContext,
  status: number,
  headers: Pairs,
  body: string | Uint8Array | null,
  vary?: string,
): Response {
  const { incoming, outgoing } = env
  if (outgoing.headersSent) return SENT
  const head = headOf(env, headers, vary)
  if (body === null) {
    outgoing.writeHead(status, head)
    outgoing.end()
    return SENT
  }
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  if (incoming.method !== 'HEAD') head.push('Content-Length', String(length))
  outgoing.writeHead(status, head)
  outgoing.end(body)
  return SENT
}

/** Writes status and headers of an answer whose body follows. False: the request has got an answer already. */
export function writeHead({ env }: RequestContext, status: number, headers: Pairs, vary?: string): boolean {
  if (env.outgoing.headersSent) return false
  env.outgoing.writeHead(status, headOf(env, headers, vary))
  return true
}

/** Adds a header to the answer. `setHeader` would make `writeHead` merge all headers one by one. */
export function addHeader({ env }: RequestContext, name: string, value: string): void {
  if (!env.head.includes(name)) env.head = [...env.head, name, value]
}

/** wire: an answer to a valid session tells its end. differs: a cache must not show it to others. */
function headOf({ head, holder }: Exchange, headers: Pairs, vary: string | undefined): string[] {
  const pairs = [...head, ...headers]
  if (holder) {
    pairs.push('expiration-seconds', String(expirationSeconds(holder)), 'expires-at', holder.expiresAt)
    pairs.push('vary', vary ?? CREDENTIAL_HEADERS)
  } else if (vary !== undefined) pairs.push('vary', vary)
  return pairs
}
