import type { RequestContext } from '../http/exchange.js'
import { forbidStoring, JSON_HEADERS } from '../http/send.js'
import { write } from '../http/write.js'

const TEXT_TYPE = 'text/plain; charset=utf-8'

/** JSON without an envelope, which no cache may keep. */
export function sendJson(c: RequestContext, status: number, value: object): Response {
  forbidStoring(c)
  return write(c, status, JSON_HEADERS, JSON.stringify(value))
}

export const plainText = (c: RequestContext, status: number, text: string): Response =>
  write(c, status, { 'content-type': TEXT_TYPE, 'x-content-type-options': 'nosniff' }, `${text}\n`)
