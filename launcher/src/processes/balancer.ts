import { once } from 'node:events'
import { connect, createServer, isIPv6, type Socket } from 'node:net'
import { mostSockets } from '@overlay/platform/process/open-files'
import type { Address } from './ports.js'

/** The source address of connections to targets, for `OVERLAY_PROXY_PROTOCOL_FROM`. */
export const balancerAddress = '127.0.0.1'

const CONNECT_MS = 5000
const LINGER_MS = 10_000

/**
 * Forwards connections to the targets in turn and skips targets that refuse. Each connection begins with a header of
 * the PROXY protocol, so that the targets see the client's address.
 */
export async function startBalancer(
  listen: Address,
  targets: readonly Address[],
  onRefused: (source: string, facts: object) => void = () => undefined,
): Promise<AsyncDisposable> {
  let turn = 0

  const forward = (client: Socket, header: string, left: number): void => {
    const target = targets[turn++ % targets.length]
    if (!target || left === 0 || client.destroyed) {
      const { remoteAddress: sourceAddress = '' } = client
      if (!client.destroyed) onRefused(sourceAddress, { sourceAddress, port: listen.port })
      client.destroy()
      return
    }
    const server = connect({ ...target, localAddress: balancerAddress, noDelay: true, allowHalfOpen: true })
    const refused = (): void => forward(client, header, left - 1)
    server.setTimeout(CONNECT_MS, () => server.destroy(new Error('not connected in time')))
    server.once('error', refused)
    server.once('connect', () => {
      server.off('error', refused)
      server.setTimeout(0)
      server.write(header)
      join(client, server)
    })
  }

  const balancer = createServer({ noDelay: true, allowHalfOpen: true, pauseOnConnect: true }, (client) => {
    client.on('error', () => client.destroy())
    forward(client, proxyHeader(client), targets.length)
  })
  balancer.maxConnections = Math.floor(mostSockets() / 2) // each connection has a second socket
  balancer.listen(listen.port, listen.host)
  await once(balancer, 'listening')
  return {
    // accepts no more connections; the targets close open ones when they stop
    async [Symbol.asyncDispose]() {
      balancer.close()
    },
  }
}

/** Version 1 of the PROXY protocol. */
function proxyHeader({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  if (remoteAddress === undefined || localAddress === undefined) return 'PROXY UNKNOWN\r\n'
  const family = isIPv6(remoteAddress) ? 'TCP6' : 'TCP4'
  const [source, destination] = [remoteAddress, localAddress].map((address) => address.replace(/%.*/, ''))
  return `PROXY ${family} ${source} ${destination} ${remotePort} ${localPort}\r\n`
}

/** Connects both sides. When one ends or fails, so does the other, also if it does not read. */
function join(client: Socket, server: Socket): void {
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    from.pipe(to)
    from.on('error', () => to.destroy())
    from.once('close', () => {
      to.setTimeout(LINGER_MS, () => to.destroy())
      to.destroySoon()
    })
  }
  if (client.destroyed) server.destroy()
}
