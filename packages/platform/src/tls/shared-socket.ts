import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import type { Server as TlsServer } from 'node:tls'

/** Where the launcher passes the socket; descriptor 3 is the pipe of the parent. */
const DESCRIPTOR = 4

/**
 * With OVERLAY_SHARED_SOCKET=1, accepts connections at the socket that the launcher has passed, too. All processes of a
 * part accept there: the next connection goes to the one that wakes first, and none that waits is lost when a process ends. Returns
 * the server that must be closed, if there is one.
 */
export async function acceptShared(
  server: TlsServer,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Server | undefined> {
  if (env.OVERLAY_SHARED_SOCKET !== '1') return undefined
  const shared = createServer({ noDelay: true }, (socket) => server.emit('connection', socket))
  shared.listen({ fd: DESCRIPTOR })
  await once(shared, 'listening')
  return shared
}
