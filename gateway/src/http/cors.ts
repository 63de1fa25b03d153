import type { IncomingMessage, ServerResponse } from 'node:http'

const HEADERS = new Set(['content-type', 'accept', 'authorization', 'zt-session'])
/** Need no leave by the standard. */
const ALWAYS = new Set(['accept', 'accept-language', 'content-language', 'origin'])
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
const SIMPLE = new Set(['GET', 'HEAD', 'POST'])

/** wire: every origin may read, with credentials. */
export function allowOrigin({ headers }: IncomingMessage, outgoing: ServerResponse): void {
  if (headers.origin === undefined) return
  outgoing.setHeader('access-control-allow-origin', '*')
  outgoing.setHeader('access-control-allow-credentials', 'true')
}

/** Answers OPTIONS: a browser asks before it sends what it means. wire: without an origin 200, and nothing in it. */
export function preflight(incoming: IncomingMessage, outgoing: ServerResponse): number {
  const { origin, 'access-control-request-method': method } = incoming.headers
  if (origin === undefined) return 200
  if (method === undefined) return 400
  if (!METHODS.has(method)) return 405
  const wanted = String(incoming.headers['access-control-request-headers'] ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && !ALWAYS.has(name))
  if (!wanted.every((name) => HEADERS.has(name))) return 403
  if (wanted.length > 0) outgoing.setHeader('access-control-allow-headers', wanted.join(','))
  if (!SIMPLE.has(method)) outgoing.setHeader('access-control-allow-methods', method)
  allowOrigin(incoming, outgoing)
  return 200
}
