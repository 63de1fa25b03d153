import { once } from 'node:events'
import { isIP } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { connect, type TLSSocket } from 'node:tls'
import type { Channel, LinkListener, Message, Version } from '@overlay/channel'
import { sendHello } from '../../packages/channel/testing/send-hello.js'
import type { RouterIdentity } from './identity.js'
import { checkAnswer, type Group, helloOf, type Line } from './lines.js'
import { untilClosed } from './until-closed.js'

/** A connected controller. */
export interface Controller {
  readonly id: string
  /** `host:port` of its listener. */
  readonly address: string
  readonly channel: Channel
  readonly version: Version
  /** Bits that it announces to routers of this line. */
  readonly capabilities: bigint
}

/** The control channels of a router. */
export interface Controllers extends AsyncDisposable {
  /** Connects, and stays connected until disposed. */
  start(): void
  /** The connected controllers, in the order of their addresses. */
  all(): Controller[]
  get(id: string): Controller | undefined
  /** The first connected one. */
  any(): Controller | undefined
}

export interface ControllersOptions {
  readonly identity: RouterIdentity
  /** `host:port` of each listener. */
  readonly addresses: readonly string[]
  /** 1.1 by default. */
  readonly line?: Line
  /** Where other routers reach this one. */
  readonly linkListeners?: readonly LinkListener[]
  onMessage(message: Message, controller: Controller): Promise<void> | void
  /** @param isAgain the router was connected to this controller before */
  onConnected?(controller: Controller, isAgain: boolean): void
  onDisconnected?(controller: Controller): void
  /** A connection failed or was refused. */
  onRefused?(address: string, err: unknown): void
  /** Between two attempts; 250 by default. */
  readonly retryMs?: number
}

const HELLO_MS = 10_000

/** The control channels of a router, not yet connected. */
export function openControllers(options: ControllersOptions): Controllers {
  const { identity, addresses, onMessage, onConnected, onDisconnected, onRefused, retryMs = 250 } = options
  const { line = '1.1', linkListeners } = options
  const stopping = new AbortController()
  const connected = new Map<string, Controller>()
  const seen = new Set<string>()

  async function keep(address: string): Promise<void> {
    const group: Group = { losses: 0 }
    while (!stopping.signal.aborted) {
      try {
        const socket = await connectTls(address, identity, stopping.signal)
        await serve(address, socket, group)
      } catch (err) {
        onRefused?.(address, err)
      }
      group.losses++
      await pause(retryMs, undefined, { signal: stopping.signal }).catch(() => undefined)
    }
  }

  async function serve(address: string, socket: TLSSocket, group: Group): Promise<void> {
    const hello = { routerId: identity.id, headers: helloOf(line, group, linkListeners) }
    const answer = await sendHello(socket, hello, HELLO_MS)
    const id = answer.controllerId ?? ''
    let capabilities: bigint
    try {
      capabilities = checkAnswer(line, group, answer.headers)
      if (connected.has(id)) throw new Error(`a second controller with the id ${id}`)
    } catch (err) {
      socket.destroy()
      throw err
    }
    const channel = answer.open({ onMessage: (message) => onMessage(message, controller) })
    const controller: Controller = { id, address, channel, version: answer.version, capabilities }
    const close = (): void => channel.close('the router ends')
    stopping.signal.addEventListener('abort', close)
    connected.set(id, controller)
    onConnected?.(controller, seen.has(id))
    seen.add(id)
    if (stopping.signal.aborted) close()
    await untilClosed(channel)
    stopping.signal.removeEventListener('abort', close)
    connected.delete(id)
    onDisconnected?.(controller)
  }

  const all = (): Controller[] =>
    addresses.flatMap((address) => [...connected.values()].filter((one) => one.address === address))
  let running: Promise<unknown> = Promise.resolve()
  return {
    start() {
      running = Promise.all(addresses.map(keep))
    },
    all,
    get: (id) => connected.get(id),
    any: () => all()[0],
    async [Symbol.asyncDispose]() {
      stopping.abort()
      await running
    },
  }
}

/** Connects as routers do. The caller sends the hello. */
export async function connectTls(
  address: string,
  { client, caPem }: Pick<RouterIdentity, 'client' | 'caPem'>,
  signal?: AbortSignal,
): Promise<TLSSocket> {
  const { hostname, port } = new URL(`tls://${address}`)
  const socket = connect({
    host: hostname,
    port: Number(port),
    ...(isIP(hostname) === 0 && { servername: hostname }), // addresses are not sent
    ...client,
    ca: caPem,
    ALPNProtocols: ['ziti-ctrl'],
  })
  socket.setNoDelay(true)
  const destroy = (): void => void socket.destroy()
  signal?.addEventListener('abort', destroy)
  try {
    await once(socket, 'secureConnect', signal && { signal })
    return socket
  } catch (err) {
    socket.destroy()
    throw err
  } finally {
    signal?.removeEventListener('abort', destroy)
  }
}
