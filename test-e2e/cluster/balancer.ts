import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Passes TCP connections through, and does not read them. */
export interface Balancer extends AsyncDisposable {
  readonly port: number
}

/** Listens at the address. Each connection goes to the next target, and nowhere else if that refuses it. */
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
  function pass(inner: Socket): void {
    const all = targets()
    const target = all[turn++ % all.length]
    if (!target) return void inner.resetAndDestroy()
    const outer = keep(connect({ ...target, allowHalfOpen: true }))
    outer.on('error', () => inner.resetAndDestroy())
    outer.once('connect', () => {
      inner.on('error', () => outer.resetAndDestroy())
      inner.pipe(outer).pipe(inner)
      inner.on('close', () => outer.destroy())
      outer.on('close', () => inner.destroy())
    })
  }
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (inner) => {
    keep(inner)
    pass(inner)
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
