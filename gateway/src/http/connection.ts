import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { clientAddressOf, presentedChain, presentedLeaf } from '@overlay/process/tls'
import type { Fault } from '@overlay/rpc'
import { LINGER_MS, REST_MS } from '../limits.js'
import { failureText, retryAfterOf } from './envelope.js'
import { requestId } from './ids.js'

/** The certificate that the client presented on this connection, unverified, without the others. */
export const peerLeaf = ({ socket }: IncomingMessage): Buffer | undefined =>
  presentedLeaf(socket as TLSSocket)

/** The certificates that the client presented on this connection, leaf first and unverified. */
export const peerCertificates = ({ socket }: IncomingMessage): Buffer[] => [
  ...presentedChain(socket as TLSSocket),
]

/** The address of the client with its port, as host:port. */
export function remoteAddressOf({ socket }: IncomingMessage): string {
  const host = clientAddressOf(socket)
  return `${host.includes(':') ? `[${host}]` : host}:${socket.remotePort ?? 0}`
}

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

/** Of a request whose body is answered but not received: waits for the rest, then closes the connection. */
export function discardRest(incoming: IncomingMessage): void {
  if (incoming.destroyed) return
  const late = setTimeout(() => incoming.socket.destroySoon(), REST_MS).unref()
  const stop = (): void => clearTimeout(late)
  incoming.once('end', stop).once('error', stop).once('close', stop)
  incoming.resume()
}
