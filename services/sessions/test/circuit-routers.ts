import {
  ctrlType,
  encodeText,
  encodeUint32,
  type Headers,
  InspectRequest,
  InspectResponse,
  type Message,
  type Outgoing,
  ReplyTimeout,
  Route,
  routeResultHeader,
  Unroute,
} from '@overlay/channel'
import { type RouterChannel, type RouterMessages, RouterOffline } from '../src/channel/router-channel.js'
import { NO_FEATURES } from '../src/domain/router-features.js'

/** How a router answers a route: undefined, it carries the circuit. */
export type RouteAnswer = (route: Route) => RouteRefusal | 'silent' | undefined

export interface RouteRefusal {
  readonly code: number
  readonly error: string
}

/** A router as controllers see it: it forwards circuits until it is told to stop. */
export interface FakeRouter {
  readonly id: string
  readonly routes: Route[]
  readonly unroutes: Unroute[]
  /** Circuits that it forwards, with the addresses of their ends here. */
  readonly circuits: Map<string, Set<string>>
  answer: RouteAnswer
  /** Further headers of its answers to routes with an egress. */
  hostHeaders: Headers
  isOnline: boolean
  /** Answers inspections. */
  inspects: boolean
  readonly replies: Outgoing[]
  readonly channel: RouterChannel
}

export interface FakeRouters {
  readonly messages: RouterMessages
  get(id: string): FakeRouter
  /** Resolves when no message is under way. */
  settled(): Promise<void>
}

/** Routers that all replicas reach. */
export function fakeRouters(...ids: readonly string[]): FakeRouters {
  const routers = new Map(ids.map((id) => [id, fakeRouter(id)]))
  const get = (id: string): FakeRouter => {
    const router = routers.get(id)
    if (!router) throw new Error(`no router ${id}`)
    return router
  }
  return {
    get,
    settled: () => new Promise((resolve) => setImmediate(resolve)),
    messages: {
      send(routerId, { type, body = Buffer.alloc(0) }) {
        routers.get(routerId)?.channel.channel.send({ type, body })
      },
      async request(routerId, message) {
        const router = routers.get(routerId)
        if (!router?.isOnline) throw new RouterOffline(routerId)
        return message.type === ctrlType.route ? answerRoute(router, message) : inspect(router, message)
      },
    },
  }
}

function fakeRouter(id: string): FakeRouter {
  const replies: Outgoing[] = []
  const channel: RouterChannel = {
    routerId: id,
    fingerprint: '',
    connectedAt: new Date(),
    features: NO_FEATURES,
    isReconnection: true,
    linkListeners: Buffer.alloc(0),
    channel: {
      send(message) {
        if (!router.isOnline || !('type' in message) || message.type !== ctrlType.unroute) return
        const unroute = Unroute.decode(message.body ?? Buffer.alloc(0))
        router.unroutes.push(unroute)
        router.circuits.delete(unroute.circuitId)
      },
      sendLarge: () => Promise.reject(new Error('not used here')),
      request: () => Promise.reject(new Error('not asked here')),
      requestLarge: () => Promise.reject(new Error('not asked here')),
      reply: (_to, answer) => void replies.push(answer),
      close: () => undefined,
      closed: new AbortController().signal,
      queuedBytes: () => 0,
      drained: async () => undefined,
      latencyMs: () => undefined,
    },
  }
  const router: FakeRouter = {
    id,
    routes: [],
    unroutes: [],
    circuits: new Map(),
    answer: () => undefined,
    hostHeaders: new Map(),
    isOnline: true,
    inspects: true,
    replies,
    channel,
  }
  return router
}

const answerOf = (type: number, headers: Headers, body: Uint8Array): Message => ({
  type,
  sequence: 1,
  headers: new Map([[1, Buffer.alloc(4)], ...headers]),
  body: Buffer.from(body),
})

/** As the forwarder of a router: an end must exist, or be made by the egress. */
function answerRoute(router: FakeRouter, { body = Buffer.alloc(0) }: Outgoing): Message | Promise<Message> {
  const route = Route.decode(body)
  router.routes.push(route)
  const answer = router.answer(route)
  if (answer === 'silent') return new Promise(() => undefined)
  const ends = router.circuits.get(route.circuitId) ?? new Set<string>()
  const begins = route.forwards.filter(({ destinationType }) => destinationType === 0)
  const missing = route.forwards.some(
    ({ destinationType, destinationAddress }) =>
      destinationType === 1 && !route.egress && !ends.has(destinationAddress),
  )
  const refusal = answer ?? (missing ? { code: 0, error: 'invalid egress destination' } : undefined)
  if (!refusal) {
    for (const { destinationAddress } of begins) ends.add(destinationAddress)
    if (route.egress) ends.add(route.egress.address)
    router.circuits.set(route.circuitId, ends)
  }
  const headers = new Map<number, Buffer>([[routeResultHeader.attempt, encodeUint32(route.attempt)]])
  if (refusal) {
    headers.set(routeResultHeader.error, encodeText(refusal.error))
    headers.set(routeResultHeader.errorCode, Buffer.from([refusal.code]))
  } else {
    headers.set(routeResultHeader.success, Buffer.from([1]))
    if (route.egress) for (const [key, value] of router.hostHeaders) headers.set(key, value)
  }
  return answerOf(ctrlType.routeResult, headers, Buffer.from(route.circuitId))
}

function inspect({ circuits, inspects }: FakeRouter, { body = Buffer.alloc(0) }: Outgoing): Message {
  if (!inspects) throw new ReplyTimeout('no answer')
  const values = InspectRequest.decode(body).requestedValues.flatMap((name) => {
    const ends = circuits.get(name.slice('circuit:'.length))
    if (!ends) return []
    const xgressDetails = Object.fromEntries([...ends].map((address) => [address, { address }]))
    return [{ name, value: JSON.stringify({ xgressDetails }) }]
  })
  const answer = InspectResponse.encode({ success: true, errors: [], values }).finish()
  return answerOf(ctrlType.inspectResponse, new Map(), answer)
}
