import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Fault } from '@overlay/rpc'
import { failureText, retryAfterOf } from './answer.js'
import { requestId } from './ids.js'

/** Time for a client to read the last answer on its connection and to close it. */
const LINGER_MS = 2000

/**
 * Sends a last answer to a request that has no answer object. Destroying the connection at once could discard it, and waiting for the client to close would
 * let the client keep it open.
 */
export function endWith(socket: Duplex, status: number, fault: Fault, id = requestId()): void {
  const cut = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(cut))
  socket.end(textOf(status, fault, id))
}

function textOf(status: number, fault: Fault, id: string): string {
  const body = failureText(fault, id)
  const line = `HTTP/1.1 ${status} ${STATUS_CODES[status]}`
  const head = `${line}\r\nconnection: close\r\ncontent-type: application/json\r\n`
  const retryAfter = retryAfterOf(fault)
  const wait = retryAfter === undefined ? '' : `retry-after: ${retryAfter}\r\n`
  return `${head}${wait}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}
