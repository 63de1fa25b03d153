import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { freePort } from '@overlay/launcher/testing'

/** A TCP proxy that can disconnect a server from its clients. */
export interface TcpProxy extends AsyncDisposable {
  readonly port: number
  /** Ends all connections and refuses new ones. */
  cut(): void
  /** Keeps all connections open and forwards nothing. */
  stall(): void
  /** Forwards everything again, including data that arrived in the meantime. */
  restore(): void
  /** New connections go to another port of the same host. */
  forwardTo(port: number): void
}

type State = 'open' | 'cut' | 'stalled'

/** Listens on a free loopback port. */
export async function startProxy(target: {
  readonly host: string
  readonly port: number
}): Promise<TcpProxy> {
  let state: State = 'open'
  let upstreamPort = target.port
  const sockets = new Set<Socket>()
  const port = await freePort()

  const track = (socket: Socket, end: () => void): void => {
    sockets.add(socket)
    if (state === 'stalled') socket.pause()
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      sockets.delete(socket)
      end()
    })
  }
  const forward = (from: Socket, to: Socket): void => {
    from.on('data', (chunk) => {
      if (!to.write(chunk)) from.pause()
    })
    to.on('drain', () => {
      if (state === 'open') from.resume()
    })
    from.on('end', () => to.end())
  }
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
    if (state === 'cut') {
      client.destroy()
      return
    }
    const upstream = connect({ ...target, port: upstreamPort, noDelay: true, allowHalfOpen: true })
    track(client, () => upstream.destroySoon())
    track(upstream, () => client.destroySoon())
    forward(client, upstream)
    forward(upstream, client)
    if (state === 'stalled') for (const socket of [client, upstream]) socket.pause()
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    port,
    cut() {
      state = 'cut'
      for (const socket of sockets) socket.destroy()
    },
    stall() {
      state = 'stalled'
      for (const socket of sockets) socket.pause()
    },
    restore() {
      state = 'open'
      for (const socket of sockets) socket.resume()
    },
    forwardTo(to) {
      upstreamPort = to
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
