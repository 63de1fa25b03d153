import {
  Alerts,
  CircuitConfirmation,
  CreateFabricTerminatorRequest,
  circuitRequestHeader,
  contentType,
  ctrlType,
  edgeType,
  encodeText,
  Fault,
  FaultSubject,
  headerKey,
  MESSAGE_LIMITS,
  modelType,
  type Outgoing,
  RemoveFabricTerminatorRequest,
  RemoveFabricTerminatorsRequest,
  RouterLinks,
  SubscribeToDataModelRequest,
  TerminatorPrecedence,
  UpdateFabricTerminatorRequest,
  VerifyRouter,
} from '@overlay/channel'
import type { Random } from './random.js'

/** Ids of what other routers and their clients have. */
export interface Foreign {
  readonly terminators: readonly string[]
  readonly links: readonly string[]
  readonly circuits: readonly string[]
  readonly routers: readonly string[]
  readonly services: readonly string[]
  readonly sessions: readonly string[]
}

export interface HostileMessage {
  readonly shape: string
  readonly message: Outgoing
  /** How many times it is sent at once. */
  readonly times: number
}

/** With this one a router deletes itself. */
const { decommissionRouter: _, ...lasting } = ctrlType

/** Every type that routers and controllers know, and some unknown ones. */
export const hostileTypes: readonly number[] = [
  ...new Set<number>([contentType, lasting, edgeType, modelType].flatMap((types) => Object.values(types))),
  999_999,
  -1,
]

/** An id of no router, circuit, link or terminator. */
const NOBODY = 'nobody'
const FIELDS = 12
const FIRST_FIELDS = 3
const FLOOD = 2000
const MOST_SUBSCRIPTIONS = 40
const HEADERS = 200
const HEADER_BYTES = 4096
/** Keys of headers that some type reads. */
const headerKeys = [
  ...Array.from({ length: 20 }, (_, key) => key + 8),
  ...Array.from({ length: 120 }, (_, key) => key + 1000),
]

/** Most lists of ids are in the first fields. */
const anyField = (random: Random): number => 1 + random.int(random.coin(0.6) ? FIRST_FIELDS : FIELDS)

const varint = (value: number): number[] =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)]
/** A protobuf field with text, bytes or a message. */
const field = (number: number, value: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([...varint((number << 3) | 2), ...varint(value.length)]), value])
const numberField = (number: number, value: number): Buffer =>
  Buffer.from([...varint(number << 3), ...varint(value)])
const textField = (number: number, text: string): Buffer => field(number, encodeText(text))

/** The same bytes as often as a body has room for them. */
function repeated(part: Buffer, bytes: number): Buffer {
  const body = Buffer.alloc(bytes - (bytes % part.length))
  return body.fill(part)
}

/** Map entries with different keys. */
function entries(number: number, value: Buffer, bytes: number): Buffer {
  const parts: Buffer[] = []
  for (let key = 0, length = 0; ; key += 1) {
    const part = field(number, Buffer.concat([textField(1, key.toString(36)), value]))
    length += part.length
    if (length > bytes) return Buffer.concat(parts)
    parts.push(part)
  }
}

function nested(number: number, depth: number): Buffer {
  let body: Buffer = Buffer.alloc(0)
  for (let level = 0; level < depth; level += 1) body = field(number, body)
  return body
}

type Shape = (id: string, random: Random, bodyBytes: number) => Omit<Outgoing, 'type'> & { times?: number }

/** Bodies and headers that any type may have. */
const shapes: Readonly<Record<string, Shape>> = {
  'no body': () => ({}),
  'random bytes': (_id, random) => ({
    body: Buffer.from(Array.from({ length: 2000 }, () => random.int(256))),
  }),
  'an id as text': (id) => ({ body: encodeText(id) }),
  'an id in a field': (id, random) => ({ body: textField(anyField(random), id) }),
  'an id in many fields': (id) => ({
    body: Buffer.concat([1, 2, 3].map((number) => textField(number, id))),
  }),
  'an id in headers': (id) => ({ headers: new Map(headerKeys.map((key) => [key, encodeText(id)])) }),
  'numbers in all fields': (_id, random) => ({
    body: Buffer.concat(
      Array.from({ length: FIELDS }, (_, at) => numberField(at + 1, random.int(2) * 0xfffffff)),
    ),
  }),
  'a field that ends early': (_id, random) => ({
    body: field(anyField(random), Buffer.alloc(100)).subarray(0, 50),
  }),
  'deep nesting': (_id, random) => ({ body: nested(anyField(random), 2000) }),
  'the longest text': (_id, random, bodyBytes) => ({
    body: field(anyField(random), Buffer.alloc(bodyBytes - 8, 'x')),
  }),
  'most empty fields': (_id, random, bodyBytes) => ({
    body: repeated(field(anyField(random), Buffer.alloc(0)), bodyBytes),
  }),
  'most short texts': (_id, random, bodyBytes) => ({
    body: repeated(textField(anyField(random), 'x'), bodyBytes),
  }),
  'most repetitions of an id': (id, random, bodyBytes) => ({
    body: repeated(textField(anyField(random), id), bodyBytes),
  }),
  'most ids in one text': (_id, random, bodyBytes) => ({
    body: Buffer.concat([numberField(1, random.int(6)), field(2, Buffer.alloc(bodyBytes - 16, 'x '))]),
  }),
  'most entries of a map': (id, random, bodyBytes) => ({
    body: entries(anyField(random), random.coin(0.5) ? numberField(2, 1) : textField(2, id), bodyBytes),
  }),
  'most headers': (_id, random) => ({
    headers: new Map(
      Array.from({ length: HEADERS }, (_, at) => [at + 2, Buffer.alloc(HEADER_BYTES, random.int(256))]),
    ),
  }),
  flood: (id) => ({ body: textField(1, id), times: FLOOD }),
}

export const shapeNames: readonly string[] = Object.keys(shapes)

/** Each type in each shape. */
export const typesInShapes: readonly (readonly [type: number, shape: string])[] = hostileTypes.flatMap(
  (type) => shapeNames.map((shape) => [type, shape] as const),
)

/** A message of the type in the shape. */
export function hostileMessage(
  type: number,
  shape: string,
  foreign: Foreign,
  random: Random,
  bodyBytes = MESSAGE_LIMITS.bodyBytes,
): HostileMessage {
  const id = random.pick(Object.values(foreign).flat()) ?? NOBODY
  const { times = 1, ...parts } = shapes[shape]?.(id, random, bodyBytes) ?? {}
  return { shape, times, message: { type, ...parts } }
}

/** Well-formed requests that change or use what others have. */
export function claims(foreign: Foreign, own: string, random: Random): HostileMessage[] {
  const [router, service] = [random.pick(foreign.routers) ?? NOBODY, random.pick(foreign.services) ?? NOBODY]
  const claim = (shape: string, type: number, body: Uint8Array): HostileMessage => ({
    shape,
    times: 1,
    message: { type, body },
  })
  const text = (shape: string, type: number, id: string) => claim(shape, type, encodeText(id))
  const fault = (subject: FaultSubject, id: string) =>
    claim('a fault', ctrlType.fault, Fault.encode({ subject, id, iteration: 1 }).finish())
  const link = (id: string, destinationRouterId: string) => ({
    id,
    destinationRouterId,
    protocol: 'tls',
    costTags: [],
    connections: undefined,
    dialAddress: 'tls:localhost:1',
    iteration: 1000,
  })
  return [
    ...foreign.terminators.flatMap((id) => [
      claim(
        'an update of a terminator',
        ctrlType.updateTerminator,
        UpdateFabricTerminatorRequest.encode({
          terminatorId: id,
          updatePrecedence: true,
          updateCost: true,
          precedence: TerminatorPrecedence.FAILED,
          cost: 65_000,
        }).finish(),
      ),
      claim(
        'a removal of a terminator',
        ctrlType.removeTerminator,
        RemoveFabricTerminatorRequest.encode({ terminatorId: id }).finish(),
      ),
      text('a removal of a terminator', edgeType.removeTunnelTerminator, id),
    ]),
    claim(
      'a removal of terminators',
      ctrlType.removeTerminators,
      RemoveFabricTerminatorsRequest.encode({ terminatorIds: [...foreign.terminators] }).finish(),
    ),
    ...foreign.links.flatMap((id) => [
      fault(FaultSubject.LINK, id),
      fault(FaultSubject.LINK_DUPLICATE, id),
      claim(
        'links of others',
        ctrlType.routerLinks,
        RouterLinks.encode({ links: [link(id, router)], fullRefresh: false }).finish(),
      ),
    ]),
    ...foreign.circuits.flatMap((id) => [
      fault(FaultSubject.FORWARD, id),
      fault(FaultSubject.INGRESS, id),
      fault(FaultSubject.EGRESS, id),
      claim(
        'a circuit of others',
        ctrlType.circuitConfirmation,
        CircuitConfirmation.encode({ circuitIds: [id], idleTimes: new Map() }).finish(),
      ),
    ]),
    claim(
      'links to all routers',
      ctrlType.routerLinks,
      RouterLinks.encode({
        links: foreign.routers.map((to) => link(`${own}-${to}`, to)),
        fullRefresh: false,
      }).finish(),
    ),
    ...foreign.services.map((serviceId) =>
      claim(
        'a terminator of a service',
        ctrlType.createTerminator,
        CreateFabricTerminatorRequest.encode({
          serviceId,
          binding: 'transport',
          address: 'tcp:127.0.0.1:6666',
          peerData: new Map(),
          cost: 0,
          precedence: TerminatorPrecedence.REQUIRED,
          instanceId: '',
          instanceSecret: Buffer.alloc(0),
        }).finish(),
      ),
    ),
    ...foreign.sessions.map((id) => ({
      shape: 'a circuit with a session of others',
      times: 1,
      message: {
        type: edgeType.createCircuitV2,
        headers: new Map([10, 11, 13, 14].map((key) => [key, encodeText(id)])),
      },
    })),
    ...foreign.services.map((serviceId) => ({
      shape: 'a dial of a service with a token of others',
      times: 1,
      message: {
        type: edgeType.createCircuitV3,
        headers: new Map<number, Buffer>([
          [circuitRequestHeader.apiSessionToken, encodeText(random.pick(foreign.sessions) ?? NOBODY)],
          [circuitRequestHeader.identityId, encodeText(own)],
          [circuitRequestHeader.serviceId, encodeText(`${serviceId}${random.coin(0.5) ? '\0' : ''}`)],
        ]),
      },
    })),
    {
      shape: 'more subscriptions than are allowed',
      times: 1 + random.int(MOST_SUBSCRIPTIONS),
      message: {
        type: modelType.subscribe,
        body: SubscribeToDataModelRequest.encode(
          SubscribeToDataModelRequest.fromPartial({
            currentIndex: BigInt(random.int(2) * 1_000_000),
            timelineId: `${router}.${service}`,
            subscriptionDurationSeconds: 0xffffffff,
            subscriptionId: '__proto__',
            renew: random.coin(0.5),
          }),
        ).finish(),
      },
    },
    claim(
      'alerts of others',
      ctrlType.alerts,
      Alerts.encode({
        alerts: Array.from({ length: 500 }, () => ({
          ...{ sourceType: 'router', sourceId: router, severity: '\u001b[2J', timestamp: 1n << 62n },
          ...{ message: '<script>', details: ['\0'], relatedEntities: new Map([['__proto__', router]]) },
        })),
      }).finish(),
    ),
    claim('a service', edgeType.createCircuitForService, textField(2, service)),
    claim(
      'a fingerprint',
      ctrlType.verifyRouter,
      VerifyRouter.encode({ routerId: router, fingerprints: [headerKey.id.toString()] }).finish(),
    ),
  ]
}
