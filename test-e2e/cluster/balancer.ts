import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Passes TCP connections through, and does not read them. */
export interface Balancer extends AsyncDisposable {
  readonly port: number
}

/**
 * Listens at the address. Each connection goes to the next target; to another one if that refuses it, as balancers with
 * passive health checks do.
 */
export async function startBalancer(
  host: string,
  port: number,
  targets: () => readonly { readonly host: string; readonly port: number }[],
): Promise<Balancer> {
  const sockets = new Set<Socket>()
  let turn = 0
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket
      .setNoDelay(true)
      .on('error', () => undefined) // 'close' follows
      .on('close', () => sockets.delete(socket))
  }
  function pass(inner: Socket, tries: number): void {
    const all = targets()
    const target = all[turn++ % all.length]
    if (!target || tries === 0) return void inner.resetAndDestroy()
    const outer = keep(connect({ ...target, allowHalfOpen: true }))
    outer.once('error', () => {
      if (outer.connecting || outer.bytesWritten === 0) pass(inner, tries - 1)
    })
    outer.once('connect', () => {
      outer.removeAllListeners('error').on('error', () => inner.resetAndDestroy())
      inner.on('error', () => outer.resetAndDestroy())
      inner.pipe(outer).pipe(inner)
      inner.on('close', () => outer.destroy())
      outer.on('close', () => inner.destroy())
    })
  }
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (inner) => {
    keep(inner)
    pass(inner, 3)
  }).listen(port, host)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
