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

/** Addresses of clients, by connection. */
const addresses = new WeakMap<object, string>()

/** Address of the client of a secured connection, behind a balancer the one that the balancer names. */
export const clientAddressOf = (socket: object): string => addresses.get(socket) ?? ''

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
    start(socket)
  }

  /** Handshakes take long to compute: of many that come at once, some start in each turn of the event loop. */
  let startedInTurn = 0
  const waiting: Socket[] = []
  function start(socket: Socket): void {
    if (startedInTurn === HANDSHAKES_PER_TURN) {
      waiting.push(socket)
      return
    }
    if (startedInTurn++ === 0) setImmediate(endTurn)
    if (!socket.destroyed) for (const startHandshake of handshakes) startHandshake.call(server, socket)
  }
  function endTurn(): void {
    startedInTurn = 0
    for (const socket of waiting.splice(0, HANDSHAKES_PER_TURN)) start(socket)
  }

  async function admitProxied(socket: Socket, balancer: string): Promise<void> {
    socket.on('error', () => socket.destroy())
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
    if (socket.remoteAddress === undefined) socket.destroy()
    else addresses.set(socket, proxied.get(placeOf(socket))?.address ?? plainAddress(socket.remoteAddress))
  })
}

const placeOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
