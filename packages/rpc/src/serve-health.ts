import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import type { Logger } from 'pino'
import type { GrpcHealth } from './health.js'
import { newestConnections } from './newest-connections.js'

/** The probes of an orchestrator are few, and strangers may reach the port. */
const MOST_CONNECTIONS = 64
const IDLE_MS = 10_000
const STOP_MS = 1000
const REQUEST_BYTES = 4096

const limits = {
  'grpc.max_receive_message_length': REQUEST_BYTES,
  'grpc.max_metadata_size': REQUEST_BYTES,
  'grpc.max_concurrent_streams': 16,
  'grpc.max_connection_age_ms': 3_600_000,
  'grpc.max_connection_idle_ms': IDLE_MS,
  'grpc.enable_channelz': 0,
}

/**
 * Serves `grpc.health.v1` and nothing else, without TLS: the probes of Kubernetes speak none. Rejects if it cannot
 * listen.
 */
export async function serveHealth(
  { host, port }: { readonly host: string; readonly port: number },
  health: GrpcHealth,
  log: Logger,
): Promise<AsyncDisposable & { readonly port: number }> {
  const server = new Server(limits)
  const stop = new AbortController()
  const names = new Set<string>()
  health.service({
    server,
    log,
    observe: () => undefined,
    stopping: stop.signal,
    multiplexed: new Map(),
    direct: new Map(),
    streams: new Map(),
    names,
  })
  const { injectConnection } = server.createConnectionInjector(ServerCredentials.createInsecure())
  const { open, admit } = newestConnections(MOST_CONNECTIONS)
  const listener = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => undefined)
    admit(socket)
    injectConnection(socket)
  })
  listener.listen(port, host)
  await once(listener, 'listening')
  return {
    port: (listener.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      stop.abort()
      listener.close()
      const forced = setTimeout(() => {
        for (const socket of open) socket.destroy()
      }, STOP_MS)
      server.tryShutdown(() => undefined)
      await once(listener, 'close') // of the last connection
      clearTimeout(forced)
    },
  }
}
