import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import type { Refused } from './check-caller.js'
import { FRAMES } from './frame-connection.js'
import { HANDSHAKE_MS } from './limits.js'
import { type PeerName, peerNameIn } from './peer-name.js'
import type { PeerTls } from './peer-tls.js'
import { addressOf, removeStaleSocket, socketPathOf } from './unix-socket.js'

export interface Listener {
  readonly port: number
  /** Accepts no more. Resolves when the connections that exist have closed, those in their handshake included. */
  close(): Promise<void>
  /** Closes all connections. */
  destroy(): void
}

interface ListenOptions {
  readonly tls: PeerTls
  accept(socket: TLSSocket, peer: PeerName): void
  readonly refused: Refused
}

/** Accepts connections of peers at `host:port` or `unix:/path`. */
export async function listen(address: string, { tls, accept, refused }: ListenOptions): Promise<Listener> {
  const server = createServer({
    ...tls.contextOptions(),
    requestCert: true,
    rejectUnauthorized: true,
    ALPNProtocols: [FRAMES, 'h2'],
    handshakeTimeout: HANDSHAKE_MS,
    noDelay: true,
  })
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  server.on('secureConnection', (socket) => {
    socket.on('error', () => undefined) // 'close' follows
    const { subjectaltname } = socket.getPeerCertificate()
    const peer = peerNameIn(subjectaltname)
    if (peer !== undefined && socket.alpnProtocol) return accept(socket, peer)
    refused({ reason: peer === undefined ? 'names no peer' : 'no HTTP/2', names: subjectaltname })
    socket.destroy()
  })
  server.on('tlsClientError', (err: NodeJS.ErrnoException, { authorizationError }) => {
    refused({ reason: String(authorizationError ?? err.code ?? err.message) })
  })
  const removeListener = tls.onChange(() => server.setSecureContext(tls.contextOptions()))

  const path = socketPathOf(address)
  if (path !== undefined) await removeStaleSocket(path)
  server.listen(addressOf(address))
  await once(server, 'listening') // throws if an error is first
  const bound = server.address()
  return {
    port: typeof bound === 'object' ? ((bound satisfies AddressInfo | null)?.port ?? 0) : 0,
    async close() {
      removeListener()
      const closed = once(server, 'close')
      server.close()
      await closed
    },
    destroy() {
      for (const socket of open) socket.destroy()
    },
  }
}
