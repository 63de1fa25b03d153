import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type Channel,
  contentType,
  encodeBool,
  encodeFrame,
  type FirstMessage,
  HELLO_SEQUENCE,
  headerKey,
  type LinkListener,
  type Message,
  type Outgoing,
  openChannel,
  PeerState,
  type PeerStateChange,
  type RouterLink,
  readFirst,
} from '@overlay/channel'
import type { Forwarder, Parcel } from './forwarder.js'
import { untilClosed } from './until-closed.js'

/** A connection to another test router. */
export interface Link {
  readonly id: string
  readonly peerId: string
  readonly iteration: number
  readonly channel: Channel
}

/** The links of a test router. Of two routers, the one with the lower id dials. */
export interface Links extends AsyncDisposable {
  /** For the hello of the control channel. */
  readonly listeners: readonly LinkListener[]
  all(): Link[]
  /** The links that this router has dialed. */
  dialed(): RouterLink[]
  peersChanged(changes: readonly PeerStateChange[]): void
  /** Ends the links to a router, and refuses new ones until `restore`. */
  cut(peerId: string): void
  restore(peerId: string): void
}

export interface LinksOptions {
  readonly routerId: string
  readonly fingerprint: string
  readonly forwarder: Forwarder
  /** Asks a controller whether the fingerprint is the router's. */
  verify(routerId: string, fingerprint: string): Promise<boolean>
  onDialed(link: RouterLink): void
  onClosed(link: Link): void
}

/** The first message of a link, as JSON. */
interface Hello {
  readonly linkId: string
  readonly routerId: string
  readonly fingerprint: string
  readonly iteration: number
}

const PROTOCOL = 'tls'
const HELLO_MS = 10_000
const REDIAL_MS = 100
const MAX_QUEUED_BYTES = 256 * 1024 * 1024
const parcelType = 1000
const parcelHeader = 1000

/** Listens at a free loopback port, and dials the routers of which controllers tell. */
export async function openLinks(options: LinksOptions): Promise<Links> {
  const { routerId, fingerprint, forwarder, verify, onDialed, onClosed } = options
  const stopping = new AbortController()
  const links = new Map<string, Link>()
  const dialed = new Map<string, RouterLink>()
  /** Addresses of routers by id, and what ends the dialing. */
  const peers = new Map<string, { readonly address: string; readonly gone: AbortController }>()
  const isCut = new Set<string>()
  const running = new Set<Promise<void>>()
  const sockets = new Set<Socket>()

  function open(socket: Socket, { decoder }: FirstMessage, one: Omit<Link, 'channel'>): Link {
    const channel = openChannel(socket, {
      decoder,
      onMessage: (message) => forwarder.forward(one.id, parcelOf(message)),
      maxQueuedBytes: MAX_QUEUED_BYTES,
    })
    const link = { ...one, channel }
    const destination = { take: (parcel: Parcel) => channel.send(messageOf(parcel)) }
    links.set(one.id, link)
    forwarder.register(one.id, destination)
    void untilClosed(channel).then(() => {
      links.delete(one.id)
      dialed.delete(one.id)
      forwarder.unregister(one.id, destination)
      if (!stopping.signal.aborted) onClosed(link)
    })
    return link
  }

  async function dial(peerId: string, address: string, iteration: number, linkId: string): Promise<void> {
    if (isCut.has(peerId)) return
    const [host = '', port] = address.replace(/^\w+:/, '').split(':')
    const socket = hold(connect({ host, port: Number(port), noDelay: true }))
    const hello: Hello = { linkId, routerId, fingerprint, iteration }
    socket.write(encodeFrame(contentType.hello, HELLO_SEQUENCE, [], Buffer.from(JSON.stringify(hello))))
    const first = await readFirst(socket, HELLO_MS)
    const { channel } = open(socket, first, { id: linkId, peerId, iteration })
    const link = {
      id: linkId,
      destinationRouterId: peerId,
      protocol: PROTOCOL,
      costTags: [],
      dialAddress: address,
      iteration,
      connections: undefined,
    }
    dialed.set(linkId, link)
    onDialed(link)
    await untilClosed(channel)
  }

  async function keepLinked(peerId: string, address: string, gone: AbortSignal): Promise<void> {
    const linkId = randomBytes(8).toString('hex')
    for (let iteration = 1; !gone.aborted; iteration++) {
      await dial(peerId, address, iteration, linkId).catch(() => undefined) // tried again
      await pause(REDIAL_MS, undefined, { signal: gone }).catch(() => undefined)
    }
  }

  async function accept(socket: Socket): Promise<void> {
    const first = await readFirst(socket, HELLO_MS)
    const hello = JSON.parse(first.message.body.toString()) as Hello
    const isVerified = await verify(hello.routerId, hello.fingerprint)
    if (!isVerified || isCut.has(hello.routerId) || socket.destroyed) throw new Error('refused')
    const answer = [[headerKey.resultSuccess, encodeBool(true)]] as const
    open(socket, first, { id: hello.linkId, peerId: hello.routerId, iteration: hello.iteration })
    socket.write(encodeFrame(contentType.result, HELLO_SEQUENCE, answer, Buffer.alloc(0)))
  }

  const track = (work: Promise<void>): void => {
    running.add(work)
    void work.finally(() => running.delete(work))
  }
  function hold(socket: Socket): Socket {
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
    sockets.add(socket)
    return socket
  }
  const server = createServer({ noDelay: true }, (socket) => {
    track(accept(hold(socket)).catch(() => void socket.destroy()))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }

  const forget = (peerId: string): void => {
    peers.get(peerId)?.gone.abort()
    peers.delete(peerId)
  }
  return {
    listeners: [
      {
        address: `tls:127.0.0.1:${port}`,
        protocol: PROTOCOL,
        costTags: [],
        groups: ['default'],
        localBinding: '',
      },
    ],
    all: () => [...links.values()],
    dialed: () => [...dialed.values()],
    peersChanged(changes) {
      for (const { id, state, listeners } of changes) {
        const address = state === PeerState.HEALTHY ? listeners[0]?.address : undefined
        if (state === PeerState.REMOVED || (address && peers.get(id)?.address !== address)) forget(id)
        if (!address || routerId >= id || peers.has(id)) continue
        const gone = new AbortController()
        peers.set(id, { address, gone })
        track(keepLinked(id, address, gone.signal))
      }
    },
    cut(peerId) {
      isCut.add(peerId)
      for (const { peerId: id, channel } of [...links.values()]) if (id === peerId) channel.close('cut')
    },
    restore: (peerId) => void isCut.delete(peerId),
    async [Symbol.asyncDispose]() {
      stopping.abort()
      for (const peerId of [...peers.keys()]) forget(peerId)
      for (const { channel } of [...links.values()]) channel.close('the router ends')
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await Promise.all([closed, ...running])
    },
  }
}

function messageOf(parcel: Parcel): Outgoing {
  if (parcel.kind === 'acknowledgement') {
    return { type: parcelType, headers: new Map([[parcelHeader, Buffer.from(JSON.stringify(parcel))]]) }
  }
  const { data, headers, ...rest } = parcel
  const texts = headers.map(([key, value]) => [key, value.toString('hex')])
  return {
    type: parcelType,
    headers: new Map([[parcelHeader, Buffer.from(JSON.stringify({ ...rest, headers: texts }))]]),
    body: data,
  }
}

function parcelOf({ headers, body }: Message): Parcel {
  const parcel = JSON.parse(headers.get(parcelHeader)?.toString() ?? '')
  if (parcel.kind === 'acknowledgement') return parcel
  const pairs = parcel.headers as [number, string][]
  return { ...parcel, data: body, headers: pairs.map(([key, hex]) => [key, Buffer.from(hex, 'hex')]) }
}
