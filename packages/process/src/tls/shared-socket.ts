import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import type { Server as TlsServer } from 'node:tls'

/**
 * With OVERLAY_SHARED_SOCKETS=COMPONENT:DESCRIPTOR,…, accepts connections at the socket that the launcher has passed for the
 * component, too. All processes of a component accept there: the next connection goes to the one that wakes first, and none that
 * waits is lost when a process ends. Returns the server that must be closed, if there is one.
 */
export async function acceptShared(
  server: TlsServer,
  component: 'gateway' | 'sessions',
  env: NodeJS.ProcessEnv = process.env,
): Promise<Server | undefined> {
  const entries = (env.OVERLAY_SHARED_SOCKETS ?? '').split(',').map((entry) => entry.split(':'))
  const [, descriptor] = entries.find(([name]) => name === component) ?? []
  if (descriptor === undefined) return undefined
  const shared = createServer({ noDelay: true }, (socket) => server.emit('connection', socket))
  shared.listen({ fd: Number(descriptor) })
  await once(shared, 'listening')
  return shared
}
