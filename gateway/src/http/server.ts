import { once } from 'node:events'
import type { IncomingMessage, RequestListener } from 'node:http'
import { createServer } from 'node:https'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import {
  acceptShared,
  type ConnectionLimits,
  clientAddressOf,
  limitConnections,
  type ServerKey,
  secureOptions,
} from '@overlay/process/tls'
import { Fault } from '@overlay/rpc'
import { HURRIED_CHANGE_MS, MAX_HEADERS } from '../limits.js'
import { endWith } from './connection.js'
import { requestId } from './ids.js'

export interface ServerLimits extends ConnectionLimits {
  /** Time to receive all headers. A whole request may take `requestMs` longer. */
  readonly headersMs: number
  readonly requestMs: number
  /** Time without any byte in either direction. */
  readonly idleMs: number
  readonly headerBytes: number
  /** Time for clients to change to another gateway at shutdown. */
  readonly changeMs: number
  /** Time for running requests to finish after it. */
  readonly drainMs: number
}

export interface Listening extends AsyncDisposable {
  readonly port: number
  /** Presents this certificate to new connections. Open ones stay. */
  renew(key: ServerKey): void
  /** Passes on requests for another protocol. Without a handler they are requests like others. */
  onUpgrade(handler: (incoming: IncomingMessage, socket: Duplex, head: Buffer) => void): void
  /** There is no other gateway to change to: disposing gives clients no time for it. */
  hurry(): void
}

/** A request that ends before its path is known. */
export interface MalformedRequest {
  readonly status: number
  readonly code: string
  /** Of the parser. */
  readonly reason: string | undefined
  readonly requestId: string
  readonly sourceAddress: string
}

/** Terminates TLS. Clients may present a certificate; the services that use it verify it. */
export async function listen(
  { host, port }: { readonly host: string; readonly port: number },
  { keyPem, chainPem }: ServerKey,
  limits: ServerLimits,
  onRequest: RequestListener,
  onMalformed: (request: MalformedRequest) => void = () => undefined,
): Promise<Listening> {
  const server = createServer({
    ...secureOptions,
    key: keyPem,
    cert: chainPem,
    requestCert: true,
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: limits.headersMs,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.headersMs + limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    maxHeaderSize: limits.headerBytes,
    connectionsCheckingInterval: 1000,
  })
  server.timeout = limits.idleMs
  server.maxHeadersCount = MAX_HEADERS
  server.on('request', onRequest)
  const securedSockets = new WeakSet<Socket>()
  server.on('secureConnection', (socket) => securedSockets.add(socket))
  const endingSockets = new WeakSet<Socket>()
  server.on('clientError', (err: NodeJS.ErrnoException, socket: Socket) => {
    if (endingSockets.has(socket)) return
    // before the end of the handshake nothing can be sent, and `end` waits for the handshake
    if (err.code === 'ECONNRESET' || !socket.writable || !securedSockets.has(socket)) return socket.destroy()
    endingSockets.add(socket)
    const [status, fault] = parserFaults[err.code ?? ''] ?? malformed
    const id = requestId()
    endWith(socket, status, fault, id)
    const { code } = fault
    onMalformed({ status, code, reason: err.code, requestId: id, sourceAddress: clientAddressOf(socket) })
  })
  limitConnections(server, limits, limits.headersMs)
  server.listen(port, host)
  await once(server, 'listening')
  const shared = await acceptShared(server, 'gateway')
  let { changeMs } = limits

  return {
    port: (server.address() as AddressInfo).port,
    renew: (key) => server.setSecureContext({ ...secureOptions, key: key.keyPem, cert: key.chainPem }),
    onUpgrade: (handler) => void server.on('upgrade', handler),
    hurry() {
      changeMs = HURRIED_CHANGE_MS
    },
    async [Symbol.asyncDispose]() {
      const servers = shared ? [server, shared] : [server]
      const closed = Promise.all(servers.map((each) => once(each, 'close')))
      for (const each of servers) NetServer.prototype.close.call(each) // accepts no more; idle connections stay
      // closing one may lose a request that is on its way, so the answers ask clients to change their connection
      await Promise.race([closed, pause(changeMs, undefined, { ref: false })])
      for (const each of servers) each.close()
      server.closeIdleConnections()
      const cut = setTimeout(() => server.closeAllConnections(), limits.drainMs)
      await closed
      clearTimeout(cut)
    },
  }
}

const malformed = [400, new Fault('COULD_NOT_VALIDATE', 'the request is malformed')] as const

const parserFaults: Readonly<Record<string, readonly [number, Fault]>> = {
  HPE_HEADER_OVERFLOW: [431, new Fault('HEADERS_TOO_LARGE')],
  ERR_HTTP_REQUEST_TIMEOUT: [408, new Fault('TIMEOUT', 'the request did not arrive in time')],
}
