import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { Fault } from '@overlay/rpc'
import type { Hono } from 'hono'
import { MAX_AUTHORITY_CHARACTERS } from '../limits.js'
import { failureText } from './envelope.js'
import { type Env, openExchange } from './exchange.js'
import { requestId } from './ids.js'
import { JSON_TYPE } from './send.js'
import type { TraceRequest } from './trace-requests.js'

/**
 * Passes the requests of a Node server to Hono. Handlers write their responses themselves: what the fetch API needs
 * (Request, Response, Headers) costs as much as the rest of a small request.
 */
export const requestListener =
  (app: Pick<Hono<Env>, 'fetch'>, trace: TraceRequest = (_, answer) => answer()): RequestListener =>
  (incoming, outgoing) => {
    if (!isTargetValid(incoming)) return refuse(outgoing)
    // errors of the error handler itself must not end the process
    const end = (err: Error): void => void outgoing.destroy(err)
    // Hono reads the method and passes the rest on. HEAD is answered like GET: Node leaves out the body
    const request = { method: incoming.method === 'OPTIONS' ? 'OPTIONS' : 'GET' } as Request
    const exchange = openExchange(incoming, outgoing)
    try {
      const answered = trace(exchange, () => app.fetch(request, exchange))
      if (answered instanceof Promise) answered.catch(end)
    } catch (err) {
      end(err as Error)
    }
  }

const refused = new Fault('COULD_NOT_VALIDATE', 'the request target or host is not valid')

function refuse(outgoing: ServerResponse): void {
  const text = failureText(refused, requestId())
  outgoing.writeHead(400, { 'content-type': JSON_TYPE, 'content-length': Buffer.byteLength(text) })
  outgoing.end(text)
}

// the usual forms, which need no parser
const HOST = /^[a-z0-9._-]+(?::(?:[1-5]\d{3,4}|[6-9]\d{3}))?$/
const TARGET = /^\/[!#$&-;=?-[\]_a-z~]*$/

/** The target is a path or a URL, without backslashes in its path, and the host is an address. */
function isTargetValid({ url = '', headers }: IncomingMessage): boolean {
  const host = headers.host || 'localhost'
  if (host.length > MAX_AUTHORITY_CHARACTERS) return false
  if (TARGET.test(url) && HOST.test(host)) return true
  const isUrl = url.startsWith('http://') || url.startsWith('https://')
  if (!isUrl && !url.startsWith('/')) return false
  if (isUrl && authorityOf(url).length > MAX_AUTHORITY_CHARACTERS) return false
  const [path = ''] = url.split('?', 1)
  const whole = isUrl ? url : `https://${host}${url}`
  if (path.includes('\\') || !URL.canParse(whole)) return false
  if (isUrl || HOST.test(host)) return true
  const { hostname } = new URL(whole)
  return hostname.length === host.length || hostname === host.replace(/:\d+$/, '').toLowerCase()
}

const authorityOf = (url: string): string => url.replace(/^https?:\/*/, '').split(/[/?#]/, 1)[0] ?? ''
