import type { BlockList, Socket } from 'node:net'
import type { Server } from 'node:tls'
import { plainAddress, sourceOf } from '@overlay/rpc'
import { metrics } from '../process/metrics.js'
import { takeProxyHeader } from './proxy-protocol.js'

export interface ConnectionLimits {
  /** Open connections, those in their handshake included. */
  readonly connections: number
  readonly connectionsPerSource: number
  /** Balancers whose PROXY headers are trusted. */
  readonly proxies: BlockList
}

const HANDSHAKES_PER_TURN = 8
const ACCEPTED_BEFORE_HANDSHAKES = 64

interface Client {
  readonly address: string
  /** As of `sourceOf`. */
  readonly source: string
}

/** By connection. */
const clients = new WeakMap<object, Client>()

/** Address of the client of a secured connection, behind a balancer the one that the balancer names. */
export const clientAddressOf = (socket: object): string => clients.get(socket)?.address ?? ''

/** What limits per source count this address under. */
export const clientSourceOf = (socket: object): string => clients.get(socket)?.source ?? ''

/**
 * Refuses connections above the limits before their handshake, and takes the PROXY header from those that have one.
 * Must be called before the server listens.
 */
export function limitConnections(
  server: Server,
  { connections, connectionsPerSource, proxies }: ConnectionLimits,
  headerMs: number,
): void {
  const handshakes = server.listeners('connection')
  const bySource = new Map<string, number>()
  /** Clients of proxied connections, by address and port of the balancer. */
  const proxied = new Map<string, { readonly address: string }>()

  let openCount = 0

  const refuse = (socket: Socket, reason: 'total' | 'source' | 'header'): void => {
    metrics.connectionsRefused.inc({ reason })
    socket.resetAndDestroy()
  }

  function admit(socket: Socket, address: string): void {
    const source = sourceOf(address)
    const open = bySource.get(source) ?? 0
    if (open >= connectionsPerSource) {
      refuse(socket, 'source')
      return
    }
    bySource.set(source, open + 1)
    socket.once('close', () => {
      const left = (bySource.get(source) ?? 0) - 1
      if (left > 0) bySource.set(source, left)
      else bySource.delete(source)
    })
    whenHeard(socket, () => start(socket, source))
  }

  /** A handshake costs nothing until the client has sent its first bytes, so it starts then. */
  function whenHeard(socket: Socket, start: () => void): void {
    const silent = setTimeout(() => socket.destroy(), headerMs)
    socket.once('close', () => clearTimeout(silent))
    socket.once('readable', () => {
      clearTimeout(silent)
      if (socket.readableLength > 0) start()
      else socket.destroy()
    })
  }

  /**
   * Handshakes take long to compute, and the event loop accepts one connection in a turn. While connections arrive, some
   * are accepted before the next few handshakes begin, and these are of each source in turn. A source that opens many
   * connections at once delays its own.
   */
  const waiting = new Map<string, Socket[]>()
  let acceptedInTurn = 0
  let acceptedBefore = 0
  let isArmed = false

  function start(socket: Socket, source: string): void {
    const queue = waiting.get(source)
    if (queue) queue.push(socket)
    else waiting.set(source, [socket])
    arm()
  }
  function arm(): void {
    if (isArmed) return
    isArmed = true
    setImmediate(endTurn)
  }
  function endTurn(): void {
    isArmed = false
    acceptedBefore += acceptedInTurn
    const isAccepting = acceptedInTurn > 0 && acceptedBefore < ACCEPTED_BEFORE_HANDSHAKES
    acceptedInTurn = 0
    if (!isAccepting) {
      acceptedBefore = 0
      for (let count = 0; count < HANDSHAKES_PER_TURN && waiting.size > 0; count++) startNext()
    }
    if (waiting.size > 0) arm()
  }
  function startNext(): void {
    for (const [source, queue] of waiting) {
      const socket = queue.shift()
      waiting.delete(source)
      if (queue.length > 0) waiting.set(source, queue) // behind the others
      if (socket && !socket.destroyed) for (const handshake of handshakes) handshake.call(server, socket)
      return
    }
  }

  async function admitProxied(socket: Socket, balancer: string): Promise<void> {
    const header = await takeProxyHeader(socket, headerMs)
    const client = { address: header?.address ?? balancer }
    const key = placeOf(socket)
    proxied.set(key, client)
    socket.once('close', () => {
      if (proxied.get(key) === client) proxied.delete(key)
    })
    admit(socket, client.address)
  }

  server.removeAllListeners('connection')
  server.maxConnections = connections
  server.on('drop', () => metrics.connectionsRefused.inc({ reason: 'total' }))
  server.on('connection', (socket: Socket) => {
    if (openCount === connections) return refuse(socket, 'total') // Node counts only those that it has accepted itself
    openCount++
    acceptedInTurn++
    socket.once('error', () => socket.destroy())
    metrics.connections.inc()
    socket.once('close', () => {
      openCount--
      metrics.connections.dec()
    })
    if (socket.remoteAddress === undefined) return socket.destroy() // the client has reset the connection
    const address = plainAddress(socket.remoteAddress)
    if (!proxies.check(address, address.includes(':') ? 'ipv6' : 'ipv4')) admit(socket, address)
    else admitProxied(socket, address).catch(() => refuse(socket, 'header'))
  })
  server.on('secureConnection', (socket) => {
    if (socket.remoteAddress === undefined) return socket.destroy()
    const address = proxied.get(placeOf(socket))?.address ?? plainAddress(socket.remoteAddress)
    clients.set(socket, { address, source: sourceOf(address) })
  })
}

const placeOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
