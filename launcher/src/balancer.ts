import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Address } from './ports.js'

/** Gives each connection to the next of the targets in turn; one that refuses it is passed over. */
export async function startBalancer(listen: Address, targets: readonly Address[]): Promise<AsyncDisposable> {
  let turn = 0

  const forward = (client: Socket, left: number): void => {
    const target = targets[turn++ % targets.length]
    if (!target || left === 0 || client.destroyed) {
      client.destroy()
      return
    }
    const server = connect({ ...target, noDelay: true, allowHalfOpen: true })
    const refused = (): void => forward(client, left - 1)
    server.once('error', refused)
    server.once('connect', () => {
      server.off('error', refused)
      join(client, server)
    })
  }

  const balancer = createServer({ noDelay: true, allowHalfOpen: true, pauseOnConnect: true }, (client) => {
    client.on('error', () => client.destroy())
    forward(client, targets.length)
  })
  balancer.listen(listen.port, listen.host)
  await once(balancer, 'listening')
  return {
    // takes no more; the targets end what is open when they stop
    async [Symbol.asyncDispose]() {
      balancer.close()
    },
  }
}

/** Whichever side ends or fails, the other hears of it. */
function join(client: Socket, server: Socket): void {
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    from.pipe(to)
    from.on('error', () => to.destroy())
    from.once('close', () => to.destroySoon())
  }
  if (client.destroyed) server.destroy()
}
