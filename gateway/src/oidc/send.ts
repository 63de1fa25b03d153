import type { RequestContext } from '../http/request-context.js'
import { forbidStoring, JSON_TYPE } from '../http/send.js'

const TEXT_TYPE = 'text/plain; charset=utf-8'

/** JSON without an envelope, which no cache may keep. */
export function sendJson(c: RequestContext, status: number, value: object): Response {
  forbidStoring(c)
  return new Response(JSON.stringify(value), { status, headers: { 'content-type': JSON_TYPE } })
}

export const plainText = (status: number, text: string): Response =>
  new Response(`${text}\n`, {
    status,
    headers: { 'content-type': TEXT_TYPE, 'x-content-type-options': 'nosniff' },
  })
