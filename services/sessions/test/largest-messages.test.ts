import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { duplexPair } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  Alerts,
  type Channel,
  CircuitConfirmation,
  ClientHello,
  ConnectEvents,
  ctrlType,
  edgeType,
  Fault,
  FaultSubject,
  LinkMetrics,
  modelType,
  type Outgoing,
  openChannel,
  RemoveFabricTerminatorsRequest,
  RouterLinks,
  UpdateRouterInterfaces,
  ValidateSessionsRequest,
  ValidateTerminatorsV2Response,
} from '@overlay/channel'
import { metrics } from '@overlay/process'
import { Fault as Failure } from '@overlay/rpc'
import { fabricEvents, noBus } from '@overlay/store/change-log'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { extendEnrollment } from '../src/certificates/extend-enrollment.js'
import { openDispatch } from '../src/channel/dispatch.js'
import type { RouterChannel } from '../src/channel/router-channel.js'
import { routerStatus } from '../src/channel/router-status.js'
import { openTraffic } from '../src/concerns.js'
import { openControl } from '../src/control-channel.js'
import { NO_FEATURES } from '../src/domain/router-features.js'
import { LIST_BYTES, MOST_BYTES, MOST_READS } from '../src/limits.js'
import { linksConcern } from '../src/links/links-concern.js'
import { openTopology } from '../src/links/topology.js'
import { openRouterDirectory } from '../src/routers/router-directory.js'
import { fakeGrants, fakeIdentity } from './access.js'
import { fakeModels, fakePki } from './models.js'
import { log, startStore } from './store.js'

/** The one limit of time in these tests: CPU of the event loop between two turns. */
const MOST_CPU_MS = 50

let network: Awaited<ReturnType<typeof startNetwork>>
beforeAll(async () => {
  network = await startNetwork()
})
afterAll(() => network[Symbol.asyncDispose]())

/** Every concern of the control channel on a database of its own. */
async function startNetwork() {
  const store = await startStore()
  const { changeLog } = store
  const { db } = changeLog
  await db.query(sql`insert into router (id, name, is_edge) values ('r1', 'r1', true), ('r2', 'r2', true)`)
  const directory = await openRouterDirectory(changeLog, log)
  const control = await openControl({ changeLog, bus: noBus, directory, log })
  const topology = await openTopology({ ...control, db, replicaId: 'c1', routers: directory })
  const service = { terminatorStrategy: '', encryptionRequired: false, maxIdleTimeMillis: 0 }
  const find = async (id: string) => ({ id, name: id, ...service })
  const position = { timeline: 'a', number: 1 }
  const grants = fakeGrants(() => ['r1'])
  const traffic = await openTraffic(
    { ...control, controllerId: 'c1', topology, linkUnknown: async () => undefined },
    {
      tokens: { verify: async () => undefined },
      identity: {
        source: fakeIdentity().source,
        calls: {
          markActivity: async () => ({ unknownIds: [] }),
          reportConnections: async () => ({}),
          openRouterSession: async () => {
            throw new Failure('NOT_FOUND')
          },
        },
      },
      policy: {
        calls: {
          getIdentityRouters: grants.getIdentityRouters,
          getCommonRouters: async ({ pairs }) => ({ routers: pairs.map(() => ({ ids: ['r1'] })) }),
          getHeader: async () => ({ lastChangeAtMs: 0, positions: { policy: position }, contentKey: '' }),
          watchRouterModel: fakeModels().watchRouterModel,
        },
        entities: {
          list: async () => {
            throw new Failure('NOT_FOUND')
          },
        },
      },
      pki: fakePki(),
      heads: async () => ({}),
      services: { get: () => undefined, find, findByName: find, async [Symbol.asyncDispose]() {} },
      deleteRouter: async () => undefined,
      createSession: async () => {
        throw new Failure('NOT_FOUND')
      },
      grantWatch: grants.grantWatch,
      policyHead: grants.policyHead,
    },
  )
  const { circuits } = traffic
  const links = linksConcern({
    ...control,
    topology,
    routers: directory,
    leaveLink: circuits.leaveLink,
    events: fabricEvents(noBus),
  })
  const presence = { put: async () => undefined, remove: () => undefined }
  let router: RouterChannel | undefined
  const status = routerStatus(presence, directory, { get: () => router })
  const certificates = {
    router: async () => undefined,
    replace: async () => undefined,
    prepare: async () => undefined,
    verify: async () => 'nothing to verify' as const,
    confirm: async () => undefined,
  }
  const concerns = [status, links, extendEnrollment({ certificates, directory, log }), ...traffic.concerns]

  return {
    handlers: concerns.flatMap(({ handlers }) => handlers),
    /** Sends a message over a channel of its own, and resolves when it is handled. `onAnswer` may close the channel. */
    async send(message: Outgoing, onAnswer: (channel: Channel) => void = () => undefined): Promise<void> {
      const [own, theirs] = duplexPair()
      let handled = (): void => undefined
      const done = new Promise<void>((resolve) => {
        handled = resolve
      })
      const dispatch = openDispatch(concerns, log) // none waits for what others have cost
      const channel = openChannel(own, {
        async onMessage(received) {
          try {
            await dispatch(received, one)
          } finally {
            handled()
          }
        },
      })
      const one: RouterChannel = {
        ...{ routerId: 'r1', channel, fingerprint: '', connectedAt: new Date(), features: NO_FEATURES },
        ...{ isReconnection: true, linkListeners: Buffer.alloc(0) },
      }
      router = one
      await status.open(one, {
        versionInfo: { version: '', revision: '', buildDate: '', os: '', arch: '' },
        features: NO_FEATURES,
        linkListeners: '',
      })
      const peer = openChannel(theirs, { onMessage: () => onAnswer(peer) })
      peer.send(message)
      await done
      channel.close('end of the message')
      peer.close('end of the message')
    },
    async [Symbol.asyncDispose]() {
      await links[Symbol.asyncDispose]()
      await traffic[Symbol.asyncDispose]()
      await topology[Symbol.asyncDispose]()
      await control[Symbol.asyncDispose]()
      await directory[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

/** Of this thread; of the process where the system does not tell. */
function cpuMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6
  } catch {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
}

/** The most CPU between two turns of the event loop while `work` runs. */
async function longestStop(work: () => Promise<void>): Promise<number> {
  let longest = 0
  let isOver = false
  const watching = (async () => {
    for (let before = cpuMs(); !isOver; ) {
      await nextTurn()
      const now = cpuMs()
      longest = Math.max(longest, now - before)
      before = now
    }
  })()
  await work()
  isOver = true
  await watching
  return longest
}

const tag = (field: number, wireType: number): number[] => {
  const value = field * 8 + wireType
  return value < 128 ? [value] : [(value & 127) | 128, value >> 7]
}
const delimited = (field: number, content: readonly number[]): number[] => [
  ...tag(field, 2),
  content.length,
  ...content,
]

/** As often as it fits. */
function repeated(bytes: readonly number[], size: number, most = Number.POSITIVE_INFINITY): Buffer {
  const unit = Buffer.from(bytes)
  return Buffer.alloc(Math.min(most, Math.floor(size / unit.length)) * unit.length, unit)
}

/** Different ids of 12 characters in one field. */
function ids(field: number, count: number): Buffer {
  return Buffer.concat(
    Array.from({ length: count }, (_, i) =>
      Buffer.from(delimited(field, [...Buffer.from(`id${String(i).padStart(10, '0')}`)])),
    ),
  )
}

/** Bodies that mean something in the type with these fields, and nothing in others. */
function* shapes(size: number): Generator<readonly [shape: string, body: Buffer]> {
  for (const field of [1, 2, 3, 4, 8, 10]) {
    yield [`empty values of field ${field}`, repeated(delimited(field, []), size)]
    yield [
      `as many as are decoded, of field ${field}`,
      repeated(delimited(field, []), size, MOST_READS / 2 - 1),
    ]
    yield [
      `entries of field ${field}`,
      repeated(delimited(field, [...delimited(1, []), ...delimited(2, [])]), size),
    ]
    yield [
      `a long text in field ${field}`,
      Buffer.concat([
        Buffer.from([...tag(field, 2), 0x80, 0x80, (size >> 14) & 127]),
        Buffer.alloc(size - 16, 'x '),
      ]),
    ]
  }
  yield ['ids', ids(1, Math.min(MOST_READS / 2 - 1, Math.floor(size / 14)))]
  yield ['nested groups', repeated(tag(15, 3), size)]
  yield ['unknown numbers', repeated([...tag(15, 0), 1], size)]
}

test('no message of any type stops the event loop for long', { timeout: 600_000 }, async () => {
  const types = [...new Set(network.handlers.map(({ type }) => type))].sort((a, b) => a - b)
  const all = [...Object.values(ctrlType), ...Object.values(edgeType), ...Object.values(modelType)]
  expect(all).toEqual(expect.arrayContaining(types))
  const bodies = new Map([MOST_BYTES, LIST_BYTES].map((size) => [size, [...shapes(size)]]))
  const stops: [string, number][] = []
  for (const type of types) {
    const most = Math.max(
      ...network.handlers.filter((one) => one.type === type).map(({ mostBytes = MOST_BYTES }) => mostBytes),
    )
    for (const [shape, body] of bodies.get(Math.min(most, LIST_BYTES)) ?? []) {
      const stop = await longestStop(() => network.send({ type, body }))
      stops.push([`${type}: ${shape}, ${body.length} bytes`, stop])
    }
  }
  expect(stops.length).toBeGreaterThanOrEqual(types.length * 27)
  expect(stops.filter(([, stop]) => stop > MOST_CPU_MS)).toEqual([])
})

const many = (count: number, prefix = randomUUID().slice(0, 8)): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`)

const link = (id: string) => ({
  ...{ id, destinationRouterId: 'r2', protocol: 'tls', dialAddress: `tls:${'x'.repeat(400)}:1` },
  ...{ costTags: [], iteration: 1, connections: undefined },
})
const fault = (id: string) => Fault.encode({ subject: FaultSubject.FORWARD, id, iteration: 0 }).finish()

const listener = (protocol: string) => {
  const address = { value: '', protocol, hostname: 'h', port: 1 }
  return { address, advertise: address }
}

test.each<[string, number, () => Uint8Array]>([
  ['a fault of ids of one character', ctrlType.fault, () => fault('x '.repeat(LIST_BYTES / 2 - 20))],
  ['a fault of many circuits', ctrlType.fault, () => fault(many(250_000).join(' '))],
  [
    'a confirmation of many circuits',
    ctrlType.circuitConfirmation,
    () => {
      const circuitIds = many(14_000)
      const idleTimes = new Map(circuitIds.map((id) => [id, 60_000_000_000n]))
      return CircuitConfirmation.encode({ circuitIds, idleTimes }).finish()
    },
  ],
  [
    'a confirmation without idle times',
    ctrlType.circuitConfirmation,
    () => CircuitConfirmation.encode({ circuitIds: many(49_000), idleTimes: new Map() }).finish(),
  ],
  [
    'links',
    ctrlType.routerLinks,
    () => RouterLinks.encode({ links: many(6000).map(link), fullRefresh: false }).finish(),
  ],
  [
    'metrics of links',
    ctrlType.metrics,
    () =>
      LinkMetrics.encode({
        sourceId: 'r1',
        histograms: new Map(many(14_000).map((id) => [`link.${id}.latency`, { mean: 1e6 }])),
      }).finish(),
  ],
  [
    'terminators to remove',
    ctrlType.removeTerminators,
    () => RemoveFabricTerminatorsRequest.encode({ terminatorIds: many(49_000) }).finish(),
  ],
  [
    'terminators that are invalid',
    ctrlType.validateTerminatorsV2Response,
    () => {
      const state = { valid: false, reason: 1, detail: 'unknown', marker: 1n }
      const states = new Map(many(7000).map((id) => [id, state]))
      return ValidateTerminatorsV2Response.encode({ states }).finish()
    },
  ],
  [
    'sessions to validate',
    edgeType.validateSessions,
    () => ValidateSessionsRequest.encode({ sessionTokens: many(49_000) }).finish(),
  ],
  [
    'listeners',
    edgeType.clientHello,
    () => ClientHello.encode(ClientHello.fromPartial({ listeners: many(3000).map(listener) })).finish(),
  ],
  [
    'connected identities',
    edgeType.connectEvents,
    () => {
      const connectTimes = [{ connectTime: 1n, srcAddr: '192.168.100.100:60000', dstAddr: '10.0.0.1:3022' }]
      const events = many(45_000).map((identityId) => ({ identityId, isConnected: true, connectTimes }))
      return ConnectEvents.encode({ events, fullState: true }).finish()
    },
  ],
  [
    'identities that connect',
    edgeType.connectEvents,
    () => {
      const connectTimes = [{ connectTime: 1n, srcAddr: '192.168.100.100:60000', dstAddr: '10.0.0.1:3022' }]
      const events = many(45_000).map((identityId) => ({ identityId, isConnected: true, connectTimes }))
      return ConnectEvents.encode({ events, fullState: false }).finish()
    },
  ],
  [
    'interfaces',
    ctrlType.updateRouterInterfaces,
    () => {
      const numbers = { mtu: 1500n, index: 1n, flags: 51n }
      const addresses = many(300)
      const interfaces = many(80).map((name) => ({ name, hardwareAddress: 'aa:bb', ...numbers, addresses }))
      return UpdateRouterInterfaces.encode({ interfaces }).finish()
    },
  ],
  [
    'alerts',
    ctrlType.alerts,
    () => {
      const texts = { sourceType: 'self', sourceId: '', severity: 'error', message: 'x'.repeat(400) }
      const alert = {
        ...texts,
        timestamp: 1n,
        details: many(20),
        relatedEntities: new Map([['self', 'self']]),
      }
      return Alerts.encode({ alerts: Array.from({ length: 300 }, () => alert) }).finish()
    },
  ],
])('%s do not stop the event loop for long', { timeout: 120_000 }, async (_what, type, encode) => {
  const body = encode()
  const stop = await longestStop(() => network.send({ type, body }))
  expect(stop).toBeLessThanOrEqual(MOST_CPU_MS)
})

test('nothing is sent to a router that has left during its message', async () => {
  const lost = async () => (await metrics.routerMessagesLost.get()).values[0]?.value ?? 0
  const before = await lost()
  let answers = 0
  const body = fault(many(20_000).join(' '))
  await network.send({ type: ctrlType.fault, body }, (channel) => {
    answers++
    channel.close('gone')
  })
  expect([answers, await lost()]).toEqual([1, before])
})
