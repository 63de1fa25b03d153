import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import type { Logger } from 'pino'
import type { GrpcHealth } from './health.js'
import { openServiceHost } from './host.js'
import { limitConnections } from './limit-connections.js'
import {
  CONNECTION_AGE_MS,
  HEALTH_IDLE_MS,
  HEALTH_MESSAGE_BYTES,
  MAX_HEALTH_CONNECTIONS,
  MAX_HEALTH_STREAMS,
} from './limits.js'

const limits = {
  'grpc.max_receive_message_length': HEALTH_MESSAGE_BYTES,
  'grpc.max_metadata_size': HEALTH_MESSAGE_BYTES,
  'grpc.max_concurrent_streams': MAX_HEALTH_STREAMS,
  'grpc.max_connection_age_ms': CONNECTION_AGE_MS,
  'grpc.max_connection_idle_ms': HEALTH_IDLE_MS,
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
  health.service(openServiceHost({ server, log, stopping: new AbortController().signal }))
  const { injectConnection } = server.createConnectionInjector(ServerCredentials.createInsecure())
  const { open, admit } = limitConnections(MAX_HEALTH_CONNECTIONS)
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
      listener.close()
      server.forceShutdown()
      for (const socket of open) socket.destroy()
      await once(listener, 'close')
    },
  }
}
