import type { IncomingMessage, ServerResponse } from 'node:http'
import { MAX_HEADER_ENTRIES } from '../limits.js'

const HEADERS = new Set(['content-type', 'accept', 'authorization', 'zt-session'])
/** Always allowed by the standard. */
const ALWAYS = new Set(['accept', 'accept-language', 'content-language', 'origin'])
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
const SIMPLE = new Set(['GET', 'HEAD', 'POST'])

/** wire: every origin may read, with credentials. */
export function allowOrigin({ headers }: IncomingMessage, outgoing: ServerResponse): void {
  if (headers.origin === undefined) return
  outgoing.setHeader('access-control-allow-origin', '*')
  outgoing.setHeader('access-control-allow-credentials', 'true')
}

/** The status of the answer to a preflight request. wire: 200 without an origin. */
export function preflight(incoming: IncomingMessage, outgoing: ServerResponse): number {
  const { origin, 'access-control-request-method': method } = incoming.headers
  if (origin === undefined) return 200
  if (method === undefined) return 400
  if (!METHODS.has(method)) return 405
  const requested = String(incoming.headers['access-control-request-headers'] ?? '')
    .split(',', MAX_HEADER_ENTRIES)
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && !ALWAYS.has(name))
  if (!requested.every((name) => HEADERS.has(name))) return 403
  if (requested.length > 0) outgoing.setHeader('access-control-allow-headers', requested.join(','))
  if (!SIMPLE.has(method)) outgoing.setHeader('access-control-allow-methods', method)
  allowOrigin(incoming, outgoing)
  return 200
}
