import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { splitAddress } from '@overlay/process'
import {
  acceptShared,
  type ConnectionLimits,
  limitConnections,
  type ServerKey,
  secureOptions,
} from '@overlay/process/tls'
import { HANDSHAKE_MS } from '../limits.js'

/** The key that routers verify, and the authorities that verify routers. */
export interface ControlKey extends ServerKey {
  readonly trustPems: readonly string[]
}

export interface ControlListener extends AsyncDisposable {
  readonly port: number
  /** For new connections. Open ones stay. */
  renew(key: ControlKey): void
  /** Accepts no connections from now on: other replicas get them. Open ones stay. */
  stopAccepting(): void
}

const ALPN = 'ziti-ctrl'

const contextOf = ({ keyPem, chainPem, trustPems }: ControlKey) => ({
  ...secureOptions,
  key: keyPem,
  cert: chainPem,
  ca: [...trustPems],
})

/** Terminates TLS. A connection without a valid certificate is passed on, too: its refusal is logged. */
export async function listenForRouters(
  address: string,
  key: ControlKey,
  limits: ConnectionLimits,
  accept: (socket: TLSSocket) => Promise<void>,
): Promise<ControlListener> {
  const { host, port } = splitAddress(address)
  const server = createServer({
    ...contextOf(key),
    requestCert: true,
    rejectUnauthorized: false,
    ALPNProtocols: [ALPN],
    handshakeTimeout: HANDSHAKE_MS,
  })
  limitConnections(server, limits, HANDSHAKE_MS) // first: it notes the addresses of clients
  const open = new Set<Socket>()
  const keep = (socket: Socket): void => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  }
  server.on('connection', keep)
  server.on('secureConnection', (socket) => {
    if (socket.destroyed) return // by a limit
    keep(socket)
    socket.setNoDelay(true)
    void accept(socket)
  })
  server.on('tlsClientError', (_err, socket) => socket.destroy())
  server.listen(port, host)
  await once(server, 'listening')
  const shared = await acceptShared(server, 'sessions')
  const servers = shared ? [server, shared] : [server]
  const closed = Promise.all(servers.map((each) => once(each, 'close')))
  const stopAccepting = (): void => {
    for (const each of servers) each.close()
  }
  return {
    port: (server.address() as AddressInfo).port,
    renew: (next) => server.setSecureContext(contextOf(next)),
    stopAccepting,
    async [Symbol.asyncDispose]() {
      stopAccepting()
      for (const socket of open) socket.destroy()
      await closed
    },
  }
}
