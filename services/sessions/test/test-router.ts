import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import {
  type Channel,
  ClientHello,
  ctrlType,
  edgeType,
  encodeBits,
  encodeBool,
  encodeText,
  encodeVersion,
  groupedHeader,
  headerKey,
  type Message,
  type Outgoing,
  routerCapability,
} from '@overlay/channel'
import { type AnsweredHello, sendHello } from '../../../packages/channel/testing/send-hello.js'

/** The key and the certificate of a router, leaf first. */
export interface RouterKey {
  readonly id: string
  readonly keyPem: string
  readonly certPem: string
  readonly fingerprint: string
}

export interface ConnectOptions {
  readonly port: number
  /** Absent: the router presents no certificate. */
  readonly key?: RouterKey | undefined
  /** Sent in the hello; default: that of the key. */
  readonly id?: string
  /** Further headers of the hello. */
  readonly headers?: Iterable<readonly [number, Buffer]>
  /** Answers a message; default: inspect requests, with their own body. */
  readonly onMessage?: (message: Message) => Outgoing | undefined
}

/** A router as far as controllers see it. */
export interface TestRouter {
  readonly hello: AnsweredHello
  readonly channel: Channel
  readonly socket: TLSSocket
  /** All messages so far, without replies. */
  readonly received: readonly Message[]
  /** The next message of this type, or one that is there already. */
  message(type: number): Promise<Message>
}

const versionOf = (version: string) =>
  encodeVersion({ version, revision: 'r', buildDate: 'd', os: 'o', arch: 'a' })
const version = versionOf('v1.1.13')

/** Headers of the hello of a router of 2.x. */
export const groupedHello: readonly (readonly [number, Buffer])[] = [
  [headerKey.version, versionOf('v2.0.3')],
  [headerKey.type, encodeText('ctrl.default')],
  [groupedHeader.isGrouped, encodeBool(true)],
  [groupedHeader.isFirst, encodeBool(true)],
  [groupedHeader.capabilities, encodeBits([routerCapability.multiChannel])],
]

/** A connection after its TLS handshake. */
export async function openSocket({ port, key }: ConnectOptions): Promise<TLSSocket> {
  const socket = connect({
    port,
    host: '127.0.0.1',
    ALPNProtocols: ['ziti-ctrl'],
    rejectUnauthorized: false,
    ...(key && { key: key.keyPem, cert: key.certPem }),
  })
  socket.on('error', () => undefined)
  await once(socket, 'secureConnect')
  return socket
}

/** Connects, and answers the server hello as an edge router. Fails where the controller refuses. */
export async function connectRouter(options: ConnectOptions): Promise<TestRouter> {
  const { key, id = key?.id ?? '', headers = [], onMessage = echo } = options
  const socket = await openSocket(options)
  const hello = await sendHello(
    socket,
    { routerId: id, headers: new Map([[headerKey.version, version], ...headers]) },
    30_000,
  )
  const received: Message[] = []
  const waiting = new Map<number, ((message: Message) => void)[]>()
  const channel = hello.open({
    onMessage(message) {
      received.push(message)
      for (const resolve of waiting.get(message.type)?.splice(0) ?? []) resolve(message)
      const answer = message.type === edgeType.serverHello ? clientHello : onMessage(message)
      if (answer) channel.reply(message, answer)
    },
  })
  return {
    hello,
    channel,
    socket,
    received,
    message: (type) =>
      new Promise((resolve, reject) => {
        const before = received.find((message) => message.type === type)
        if (before) return resolve(before)
        waiting.set(type, [...(waiting.get(type) ?? []), resolve])
        channel.closed.addEventListener('abort', () => reject(channel.closed.reason), { once: true })
      }),
  }
}

/** Resolves with the reason when the channel of a router is closed. */
export const untilClosed = ({ channel: { closed } }: Pick<TestRouter, 'channel'>): Promise<string> =>
  new Promise((resolve) => {
    const settle = (): void => resolve(closed.reason.message)
    if (closed.aborted) settle()
    else closed.addEventListener('abort', settle, { once: true })
  })

const echo = ({ type, body }: Message): Outgoing | undefined =>
  type === ctrlType.inspectRequest ? { type: ctrlType.inspectResponse, body } : undefined

const clientHello: Outgoing = {
  type: edgeType.clientHello,
  body: ClientHello.encode(
    ClientHello.fromPartial({
      hostname: 'edge.example',
      listeners: [{ advertise: { protocol: 'tls', hostname: 'edge.example', port: 3022 } }],
    }),
  ).finish(),
}
