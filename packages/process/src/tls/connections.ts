import type { BlockList, Socket } from 'node:net'
import type { Server, TLSSocket } from 'node:tls'
import { plainAddress, sourceOf } from '@overlay/rpc'
import type { WriteLine } from '../bounded-lines.js'
import {
  ACCEPTED_BEFORE_HANDSHAKES,
  FAILED_HANDSHAKE_BYTES,
  HANDSHAKE_MS_IF_LIMITED,
  HANDSHAKES_IF_LIMITED,
  HANDSHAKES_PER_TURN,
  SOURCE_LIMITED_MS,
  SOURCE_REST_MS,
  USUAL_HANDSHAKE_BYTES,
} from '../limits.js'
import { metrics } from '../metrics.js'
import { connectionSettings } from '../shared-settings.js'
import { answerPlainHttp, isPlainHttp } from './plain-http.js'
import { isExcessive, presentedLeaf } from './presented.js'
import { beginsWithProxyHeader, takeProxyHeader } from './proxy-protocol.js'

export interface ConnectionLimits {
  /** Open connections, those in their handshake included. */
  readonly connections: number
  readonly connectionsPerSource: number
  /** Balancers whose PROXY headers are trusted. */
  readonly proxies: BlockList
  /** Reports connections that do not begin with TLS. */
  readonly noteRefused?: WriteLine
}

const HANDSHAKE_RECORD = 0x16
const PLAIN_HTTP = 'plain HTTP: clients must use https, balancers must pass TLS through'
const { env: SETTING } = connectionSettings.proxyProtocolFrom

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
  { connections, connectionsPerSource, proxies, noteRefused }: ConnectionLimits,
  headerMs: number,
): void {
  const handshakes = server.listeners('connection')
  const bySource = new Map<string, number>()
  /** Clients of proxied connections, by address and port of the balancer. */
  const proxied = new Map<string, { readonly address: string }>()

  let openCount = 0

  const refuse = (socket: Socket, reason: 'total' | 'source' | 'header' | 'certificates'): void => {
    metrics.connectionsRefused.inc({ reason })
    socket.resetAndDestroy()
  }

  function refuseStart(socket: Socket, address: string, reason: 'proxy' | 'http', detail: string): void {
    metrics.connectionsRefused.inc({ reason })
    noteRefused?.(sourceOf(address), { sourceAddress: address, reason, detail })
    if (reason === 'http') answerPlainHttp(socket)
    else socket.resetAndDestroy()
  }

  function admit(socket: Socket, address: string, isProxied: boolean): void {
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
    whenHeard(socket, (head) => {
      const isTls = head[0] === HANDSHAKE_RECORD
      // the usual mistakes of a configuration, which a failed handshake would not explain
      if (!isTls && !isProxied && beginsWithProxyHeader(head))
        return refuseStart(
          socket,
          address,
          'proxy',
          `PROXY header from ${address}, which ${SETTING} does not list`,
        )
      if (!isTls && isPlainHttp(head)) return refuseStart(socket, address, 'http', PLAIN_HTTP)
      socket.unshift(head)
      start(socket, source)
    })
  }

  /** A handshake costs nothing until the client has sent its first bytes, so it starts then. */
  function whenHeard(socket: Socket, start: (head: Buffer) => void): void {
    const silent = setTimeout(() => socket.destroy(), headerMs)
    socket.once('close', () => clearTimeout(silent))
    socket.once('readable', () => {
      clearTimeout(silent)
      const head: Buffer | null = socket.read()
      if (head) start(head)
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
    const limited = limitedSources.get(source)
    if (limited) {
      limited.waiting.push(socket)
      startLimited(source, limited)
      return
    }
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
      if (socket && !socket.destroyed) beginHandshake(socket, source)
      return
    }
  }

  const begun = new Map<string, Handshake>()

  function beginHandshake(socket: Socket, source: string, onEnd?: () => void): void {
    const place = placeOf(socket)
    const handshake = { socket, source, onEnd }
    begun.set(place, handshake)
    socket.once('close', () => {
      if (begun.get(place) !== handshake) return
      begun.delete(place)
      if (socket.bytesRead > FAILED_HANDSHAKE_BYTES) noteExcess(source)
      onEnd?.()
    })
    for (const listener of handshakes) listener.call(server, socket)
  }

  /**
   * OpenSSL verifies the signatures of all certificates that a client presents, regardless of who signed them, and only
   * their size is limited: some 100 ms for one handshake. After an excessive one, the source rests, and then has a few
   * handshakes under way at a time. Those that it had begun end once, because they may all be excessive. Its connections
   * wait instead of being refused: behind a balancer or a translated address, they are those of many clients.
   */
  const limitedSources = new Map<string, LimitedSource>()

  function noteExcess(source: string): void {
    const now = performance.now()
    const limited = limitedSources.get(source)
    if (limited) {
      limited.restUntil = Math.max(limited.restUntil, now) + SOURCE_REST_MS
      wakeLater(source, limited)
      return
    }
    const created = {
      waiting: waiting.get(source) ?? [],
      underWay: 0,
      restUntil: now + SOURCE_REST_MS,
      timer: undefined,
    }
    limitedSources.set(source, created)
    waiting.delete(source)
    wakeLater(source, created)
    for (const [place, handshake] of begun) {
      if (handshake.source !== source) continue
      begun.delete(place)
      refuse(handshake.socket, 'certificates')
    }
  }

  /** At the end of the rest, and then when the limit may end. */
  function wakeLater(source: string, limited: LimitedSource): void {
    clearTimeout(limited.timer)
    const restMs = limited.restUntil - performance.now()
    const ms = restMs > 0 ? restMs : Math.max(SOURCE_REST_MS, restMs + SOURCE_LIMITED_MS)
    limited.timer = setTimeout(() => wake(source, limited), Math.ceil(ms)).unref()
  }

  function wake(source: string, limited: LimitedSource): void {
    startLimited(source, limited)
    const isOver = limited.underWay === 0 && performance.now() >= limited.restUntil + SOURCE_LIMITED_MS
    if (isOver) limitedSources.delete(source)
    else wakeLater(source, limited)
  }

  function startLimited(source: string, limited: LimitedSource): void {
    while (limited.underWay < HANDSHAKES_IF_LIMITED && performance.now() >= limited.restUntil) {
      const socket = limited.waiting.shift()
      if (!socket) return
      if (socket.destroyed) continue
      limited.underWay++
      const late = setTimeout(() => socket.destroy(), HANDSHAKE_MS_IF_LIMITED)
      beginHandshake(socket, source, () => {
        clearTimeout(late)
        limited.underWay--
        startLimited(source, limited)
      })
    }
  }

  /** What was read may contain the first request, so the certificates decide. False: the connection has ended. */
  function endHandshake(socket: TLSSocket): boolean {
    const place = placeOf(socket)
    const handshake = begun.get(place)
    begun.delete(place)
    if (!handshake) return true
    const { source, onEnd } = handshake
    const isRefused = handshake.socket.bytesRead > USUAL_HANDSHAKE_BYTES && isExcessive(socket)
    if (isRefused) {
      metrics.connectionsRefused.inc({ reason: 'certificates' })
      socket.destroy()
      noteExcess(source)
    }
    onEnd?.()
    return !isRefused
  }

  async function admitProxied(socket: Socket, balancer: string): Promise<void> {
    const header = await takeProxyHeader(socket, headerMs)
    const client = { address: header?.address ?? balancer }
    const key = placeOf(socket)
    proxied.set(key, client)
    socket.once('close', () => {
      if (proxied.get(key) === client) proxied.delete(key)
    })
    admit(socket, client.address, header !== undefined)
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
    if (!proxies.check(address, address.includes(':') ? 'ipv6' : 'ipv4')) admit(socket, address, false)
    else admitProxied(socket, address).catch(() => refuse(socket, 'header'))
  })
  server.on('secureConnection', (socket) => {
    if (socket.remoteAddress === undefined) return socket.destroy()
    // a certificate that the next one has not signed leaves an error in OpenSSL's queue, which Node would report as that
    // of the connection: this call removes it
    presentedLeaf(socket)
    if (!endHandshake(socket)) return
    const address = proxied.get(placeOf(socket))?.address ?? plainAddress(socket.remoteAddress)
    clients.set(socket, { address, source: sourceOf(address) })
  })
}

interface Handshake {
  readonly socket: Socket
  readonly source: string
  readonly onEnd: (() => void) | undefined
}

interface LimitedSource {
  /** Handshakes that have not begun. */
  readonly waiting: Socket[]
  underWay: number
  restUntil: number
  timer: NodeJS.Timeout | undefined
}

const placeOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
