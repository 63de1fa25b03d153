import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type TLSSocket } from 'node:tls'
import {
  ApiSessionAdded,
  acceptHello,
  type Channel,
  CreateTerminatorResult,
  CreateTerminatorV2Request,
  CreateTerminatorV2Response,
  circuitRequestHeader,
  circuitResponseHeader,
  ctrlType,
  DestinationType,
  decodeBytesMap,
  edgeType,
  encodeBool,
  encodeBytesMap,
  encodeText,
  encodeVersion,
  Fault,
  FaultSubject,
  groupedHeader,
  type Headers,
  headerKey,
  LinkListeners,
  type Message,
  PeerState,
  PeerStateChanges,
  Route,
  type RouteForward,
  type RouterApiSession,
  RouterLinks,
  routeResultHeader,
  SessionRemoved,
  SubscribeToDataModelRequest,
  SYNC_STRATEGY,
  syncHeader,
  Unroute,
} from '@overlay/channel'
import type { Certificate } from '../client.js'
import { modelHeader, modelType, versionOf } from './lines.js'

interface Circuit {
  readonly id: string
  readonly ingress: string
  readonly egress: string
  readonly from: string
  readonly to: string
  readonly terminatorId: string
  /** Of the client. */
  readonly peerData: Map<number, Buffer>
}

/** The least that routers need of a controller. Sessions and terminators: one service, its last terminator. */
export interface FakeController extends AsyncDisposable {
  readonly address: string
  readonly circuits: ReadonlyMap<string, Circuit>
  /** Headers of the hellos, newest last. */
  readonly hellos: readonly Headers[]
  /** Requests for the data model. It answers none: tests do, with `send`. */
  readonly subscriptions: readonly SubscribeToDataModelRequest[]
  /** Ends circuits as a revocation does. */
  removeSession(token: string, id?: string): void
  send(type: number, body: Uint8Array, headers?: Headers): void
  request(type: number, body: Uint8Array): Promise<Message>
  /** Closes the channels of all routers, which connect again. */
  disconnect(): void
}

export interface FakeControllerOptions {
  /** `controller` by default. */
  readonly id?: string
  /** Replaces or, with undefined, leaves out headers of the answer to a hello. */
  readonly answer?: Readonly<Record<number, Buffer | undefined>>
}

export async function startFakeController(
  certificate: Certificate,
  caPem: string,
  apiSessions: RouterApiSession[],
  { id: controllerId = 'controller', answer = {} }: FakeControllerOptions = {},
): Promise<FakeController> {
  const hellos: Headers[] = []
  const subscriptions: SubscribeToDataModelRequest[] = []
  const routers = new Map<string, Channel>()
  const listeners = new Map<string, LinkListeners>()
  const links = new Map<string, { from: string; to: string }>()
  const circuits = new Map<string, Circuit>()
  let terminator = { id: '', routerId: '', peerData: new Map<number, Buffer>() }
  let count = 0

  function tellPeers(): void {
    for (const [id, channel] of routers) {
      const changes = [...listeners]
        .filter(([peerId]) => peerId !== id)
        .map(([peerId, { listeners }]) => ({
          id: peerId,
          version: 'v1.1.13',
          state: PeerState.HEALTHY,
          listeners,
        }))
      channel.send({ type: ctrlType.peerStateChanges, body: PeerStateChanges.encode({ changes }).finish() })
    }
  }

  const linkBetween = (a: string, b: string): string | undefined =>
    [...links].find(([, { from, to }]) => (from === a && to === b) || (from === b && to === a))?.[0]

  /** Sets up or moves a circuit. Throws if a router refuses. */
  async function route(circuit: Circuit, withEgress: boolean): Promise<void> {
    const { id, ingress, egress, from, to, terminatorId, peerData } = circuit
    const forward = (
      sourceAddress: string,
      destinationAddress: string,
      destinationType: DestinationType,
    ) => ({
      sourceAddress,
      destinationAddress,
      destinationType,
    })
    const link = from === to ? undefined : linkBetween(from, to)
    if (from !== to && !link) throw new Error('no path')
    const { START, END, LINK } = DestinationType
    const hops: [string, RouteForward[]][] = link
      ? [
          [from, [forward(ingress, link, LINK), forward(link, ingress, START)]],
          [to, [forward(egress, link, LINK), forward(link, egress, END)]],
        ]
      : [[from, [forward(ingress, egress, END), forward(egress, ingress, START)]]]
    await Promise.all(
      hops.map(async ([routerId, forwards]) => {
        const body = Route.encode({
          circuitId: id,
          attempt: 1,
          egress:
            withEgress && routerId === to
              ? { binding: 'edge', address: egress, destination: terminatorId, peerData }
              : undefined,
          forwards,
          context: undefined,
          timeout: 10_000_000_000n,
          tags: new Map(),
        }).finish()
        const reply = await routers.get(routerId)?.request({ type: ctrlType.route, body }, 10_000)
        if (!reply?.headers.has(routeResultHeader.success))
          throw new Error(reply?.headers.get(routeResultHeader.error)?.toString() ?? 'offline')
      }),
    )
  }

  async function createCircuit(routerId: string, message: Message, channel: Channel): Promise<void> {
    const id = `circuit-${++count}`
    const peerData = message.headers.get(circuitRequestHeader.peerData)
    const circuit = {
      id,
      ingress: `${id}-in`,
      egress: `${id}-out`,
      from: routerId,
      to: terminator.routerId,
      terminatorId: terminator.id,
      peerData: peerData ? decodeBytesMap(peerData) : new Map(),
    }
    try {
      if (!message.headers.get(circuitRequestHeader.sessionToken)?.length) throw new Error('no session')
      await route(circuit, true)
      circuits.set(id, circuit)
      channel.reply(message, {
        type: edgeType.createCircuitV2Response,
        headers: new Map([
          [circuitResponseHeader.circuitId, encodeText(id)],
          [circuitResponseHeader.address, encodeText(circuit.ingress)],
          [circuitResponseHeader.peerData, encodeBytesMap(terminator.peerData)],
        ]),
      })
    } catch (err) {
      channel.reply(message, { type: edgeType.error, body: encodeText((err as Error).message) })
    }
  }

  function endCircuit(id: string): void {
    const circuit = circuits.get(id)
    if (!circuit) return
    circuits.delete(id)
    const body = Unroute.encode({ circuitId: id, now: false }).finish()
    for (const routerId of new Set([circuit.from, circuit.to]))
      routers.get(routerId)?.send({ type: ctrlType.unroute, body })
  }

  async function faulted({ subject, id }: Fault): Promise<void> {
    if (subject === FaultSubject.INGRESS || subject === FaultSubject.EGRESS) endCircuit(id)
    if (subject === FaultSubject.LINK) links.delete(id)
  }

  async function linked(routerId: string, reported: RouterLinks): Promise<void> {
    for (const { id, destinationRouterId } of reported.links)
      links.set(id, { from: routerId, to: destinationRouterId })
    for (const circuit of circuits.values()) await route(circuit, false).catch(() => undefined) // no path yet
  }

  const handlers: Record<number, (message: Message, routerId: string, channel: Channel) => unknown> = {
    [edgeType.createTerminatorV2](message, routerId, channel) {
      const { address, peerData } = CreateTerminatorV2Request.decode(message.body)
      terminator = { id: address, routerId, peerData }
      const body = CreateTerminatorV2Response.encode({
        terminatorId: address,
        result: CreateTerminatorResult.SUCCESS,
        message: '',
        errorCode: 0,
        retryHint: 0,
      }).finish()
      channel.reply(message, { type: edgeType.createTerminatorV2Response, body })
    },
    [edgeType.createCircuitV2]: (message, routerId, channel) => createCircuit(routerId, message, channel),
    [modelType.subscribe]: ({ body }) => subscriptions.push(SubscribeToDataModelRequest.decode(body)),
    [ctrlType.fault]: ({ body }) => faulted(Fault.decode(body)),
    [ctrlType.routerLinks]: ({ body }, routerId) => linked(routerId, RouterLinks.decode(body)),
    [ctrlType.verifyRouter]: (message, _, channel) =>
      channel.reply(message, { type: 2, headers: new Map([[headerKey.resultSuccess, encodeBool(true)]]) }),
    [ctrlType.removeTerminators]: (message, _, channel) =>
      channel.reply(message, { type: 2, headers: new Map([[headerKey.resultSuccess, encodeBool(true)]]) }),
  }

  function answerTo(hello: Headers): Headers {
    const own = new Map<number, Buffer>([
      [headerKey.id, encodeText(controllerId)],
      [headerKey.version, encodeVersion(versionOf('1.1'))],
      [headerKey.capabilities, Buffer.of(0x0e)],
    ])
    if (hello.has(groupedHeader.isGrouped)) {
      own.set(headerKey.connectionId, hello.get(headerKey.connectionId) ?? encodeText('first'))
      own.set(groupedHeader.secret, hello.get(groupedHeader.secret) ?? randomBytes(16))
      own.set(groupedHeader.capabilities, Buffer.of(0x5e))
    }
    for (const [key, value] of Object.entries(answer)) {
      if (value) own.set(Number(key), value)
      else own.delete(Number(key))
    }
    return own
  }

  async function accept(socket: TLSSocket): Promise<void> {
    const hello = await acceptHello(socket, 10_000)
    const { routerId } = hello
    hellos.push(hello.headers)
    const channel = hello.accept(answerTo(hello.headers), {
      onMessage: (message) => void handlers[message.type]?.(message, routerId, channel),
    })
    routers.set(routerId, channel)
    const isGrouped = hello.headers.has(groupedHeader.isGrouped)
    const linkListeners = hello.headers.get(isGrouped ? groupedHeader.listeners : headerKey.listeners)
    const supportsIndex = new Map([[modelHeader.supportsIndex, encodeBool(true)]])
    channel.send({ type: edgeType.serverHello, ...(isGrouped && { headers: supportsIndex }) })
    if (linkListeners) listeners.set(routerId, LinkListeners.decode(linkListeners))
    channel.send({
      type: edgeType.apiSessionAdded,
      headers: new Map([
        [syncHeader.strategy, encodeText(SYNC_STRATEGY)],
        [syncHeader.state, encodeText(JSON.stringify({ id: 'a', isLast: true, sequence: 0 }))],
      ]),
      body: ApiSessionAdded.encode({ isFullState: true, apiSessions }).finish(),
    })
    tellPeers()
  }

  const server = createServer(
    { ...certificate, ca: caPem, requestCert: true, ALPNProtocols: ['ziti-ctrl'] },
    (socket) => void accept(socket).catch(() => socket.destroy()),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const send: FakeController['send'] = (type, body, headers) => {
    for (const channel of routers.values()) channel.send({ type, body, ...(headers && { headers }) })
  }
  return {
    address: `localhost:${(server.address() as { port: number }).port}`,
    circuits,
    hellos,
    subscriptions,
    send,
    request(type, body) {
      const [channel] = routers.values()
      if (!channel) throw new Error('no router is connected')
      return channel.request({ type, body }, 10_000)
    },
    disconnect() {
      for (const channel of routers.values()) channel.close('the controller disconnects')
    },
    removeSession: (token, id) =>
      send(edgeType.sessionRemoved, SessionRemoved.encode({ tokens: [token], ids: id ? [id] : [] }).finish()),
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      for (const channel of routers.values()) channel.close('the controller ends')
      await closed
    },
  }
}
