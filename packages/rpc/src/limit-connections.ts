import type { Socket } from 'node:net'

/**
 * Returns a listener for the connections of a server that probes use. A connection above the limit closes the oldest
 * one, so that strangers who hold all of them cannot keep probes away. `open`: those that are open, oldest first.
 */
export function limitConnections(most: number) {
  const open = new Set<Socket>()
  const admit = (socket: Socket): void => {
    const [oldest] = open
    if (open.size >= most) oldest?.destroy()
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  }
  return { open: open as ReadonlySet<Socket>, admit }
}
