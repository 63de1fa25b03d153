import {
  type Channel,
  contentType,
  ctrlType,
  decodeBool,
  Fault,
  FaultSubject,
  headerKey,
  LinkMetrics,
  type Message,
  type Outgoing,
  RouterLinks,
  VerifyRouter,
} from '@overlay/channel'
import { type TestBus, testBus } from '@overlay/launcher/testing'
import { Fault as Failure } from '@overlay/rpc'
import { type FabricEvent, openBus } from '@overlay/store/change-log'
import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { RouterChannel } from '../src/channel/router-channel.js'
import { NO_FEATURES } from '../src/domain/router-features.js'
import { linksConcern } from '../src/links/links-concern.js'
import { openTopology } from '../src/links/topology.js'
import type { NetworkRouter, RouterDirectory } from '../src/routers/router-directory.js'
import type { PresenceListener, RouterPresence } from '../src/routers/router-presence.js'
import { log, startStore } from './store.js'

const until = (condition: () => void) => vi.waitFor(condition, { timeout: 30_000, interval: 5 })

let broker: TestBus
beforeAll(async () => {
  broker = await testBus()
})
afterAll(() => broker[Symbol.asyncDispose]())

/** Routers of the network: each is online while a replica has a channel of it. */
function startPresence() {
  const online = new Set<string>()
  const listeners = new Set<PresenceListener>()
  const presence: RouterPresence = {
    isOnline: (id) => online.has(id),
    of: () => [],
    lastFeatures: () => undefined,
    hasFormerReplicas: () => false,
    online: () =>
      [...online].map((routerId) => ({
        routerId,
        replicaId: 'c1',
        connectedAt: new Date(),
        features: NO_FEATURES,
        isReconnection: true,
        linkListeners: Buffer.alloc(0),
        version: '',
        hostname: '',
        supportedProtocols: {},
        syncStatus: '',
      })),
    replicas: () => new Set(),
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
  }
  return {
    presence,
    set(routerId: string, isOnline: boolean) {
      if (isOnline) online.add(routerId)
      else online.delete(routerId)
      for (const { routerChanged } of listeners) routerChanged?.(routerId)
    },
  }
}

const unchanged = { onChange: () => ({ [Symbol.dispose]: () => undefined }) }

interface Options {
  readonly routerIds?: readonly string[]
  readonly replicas?: number
  readonly graceMs?: number
  readonly confirmMs?: number
  readonly busUrl?: string
  /** Whether each router has accepted links of each other one; true by default. */
  readonly areAccepted?: boolean
}

/** A database that may go away, before statements or after those of one name. */
function unreliable<D extends Db>(db: D) {
  const state = { isAway: false, losesAnswerOf: '' }
  return {
    state,
    db: {
      ...db,
      async query(query, name) {
        if (state.isAway) throw new Failure('UNAVAILABLE')
        const result = await db.query(query, name)
        if (name === undefined || name !== state.losesAnswerOf) return result
        state.losesAnswerOf = ''
        throw new Failure('UNAVAILABLE')
      },
    } as D,
  }
}

const newRouter = (fingerprint: string | undefined): NetworkRouter => ({
  ...{ id: '', name: '', isEdge: true, isTunnelerEnabled: false },
  cost: 0,
  noTraversal: false,
  disabled: false,
  fingerprint,
  formerFingerprints: [],
  unverifiedFingerprint: undefined,
})

/** Replicas with one database and one bus. */
async function startReplicas(options: Options = {}) {
  const { routerIds = ['a', 'b', 'c'], replicas = 1, areAccepted = true } = options
  const { graceMs = 60_000, confirmMs = 60_000 } = options
  const opened: AsyncDisposable[] = []
  const use = <T extends AsyncDisposable>(resource: T): T => {
    opened.unshift(resource)
    return resource
  }
  const store = use(await startStore())
  const { db, state: database } = unreliable(store.changeLog.db)
  for (const id of routerIds)
    await db.query(sql`insert into router (id, name, is_edge) values (${id}, ${id}, true)`)
  if (areAccepted)
    await db.query(sql`
      insert into link_acceptance
      select a.id, b.id from router as a join router as b on a.id <> b.id`)
  const network = startPresence()
  const rows = new Map<string, NetworkRouter>(routerIds.map((id) => [id, newRouter(`of ${id}`)]))
  const routers: Pick<RouterDirectory, 'get' | 'onChange'> = { get: (id) => rows.get(id), ...unchanged }
  const started = []
  for (let n = 1; n <= replicas; n++) {
    const bus = use(await openBus(options.busUrl ?? broker.url, log))
    const { presence } = network
    const deps = { db, bus, log, replicaId: `c${n}`, presence, routers, checkMs: 20 }
    const topology = use(await openTopology(deps))
    const left: string[] = []
    const events: FabricEvent[] = []
    const sent: { readonly to: string; readonly message: Outgoing }[] = []
    const concern = use(
      linksConcern({
        topology,
        presence,
        routers,
        channels: { get: () => undefined, all: () => [] },
        messages: { send: (to, message) => void sent.push({ to, message }) },
        leaveLink: async (id) => void left.push(id),
        events: { emit: (event) => void events.push(event) },
        log,
        sweepMs: 20,
        graceMs,
        confirmMs,
      }),
    )
    started.push({ topology, concern, left, events, sent, ...channelsOf(concern, network) })
  }
  const [one, two = one] = started
  if (!one || !two) throw new Error('no replicas')
  return {
    db,
    database,
    network,
    rows,
    one,
    two,
    async [Symbol.asyncDispose]() {
      for (const resource of opened) await resource[Symbol.asyncDispose]()
    },
  }
}

type Concern = ReturnType<typeof linksConcern>

/** Channels of routers to one replica. */
function channelsOf(concern: Concern, network: ReturnType<typeof startPresence>) {
  return {
    connect(routerId: string) {
      const closing = new AbortController()
      const replies: Outgoing[] = []
      const channel: Partial<Channel> = {
        closed: closing.signal,
        send: () => undefined,
        reply: (_, answer) => void replies.push(answer),
      }
      const router = { routerId, channel, features: NO_FEATURES } as RouterChannel
      network.set(routerId, true)
      void concern.connected?.(router)
      const send = async (type: number, body: Uint8Array): Promise<void> => {
        const handler = concern.handlers.find((one) => one.type === type)
        const message: Message = { type, sequence: 1, headers: new Map(), body: Buffer.from(body) }
        await handler?.prepare(message, router)()
      }
      return {
        replies,
        report: (...links: Parameters<typeof linkTo>[]) =>
          send(
            ctrlType.routerLinks,
            RouterLinks.encode({ links: links.map((link) => linkTo(...link)), fullRefresh: false }).finish(),
          ),
        reportAll: (...links: Parameters<typeof linkTo>[]) =>
          send(
            ctrlType.routerLinks,
            RouterLinks.encode({ links: links.map((link) => linkTo(...link)), fullRefresh: true }).finish(),
          ),
        fault: (id: string, subject = FaultSubject.LINK, iteration = 1) =>
          send(ctrlType.fault, Fault.encode({ id, subject, iteration }).finish()),
        verify: (claimed: string, ...fingerprints: string[]) =>
          send(ctrlType.verifyRouter, VerifyRouter.encode({ routerId: claimed, fingerprints }).finish()),
        measure: (ms: Readonly<Record<string, number>>, sourceId = routerId) => {
          const histograms = new Map(Object.entries(ms).map(([name, mean]) => [name, { mean: mean * 1e6 }]))
          return send(ctrlType.metrics, LinkMetrics.encode({ sourceId, histograms }).finish())
        },
        disconnect() {
          closing.abort()
          network.set(routerId, false)
          void concern.disconnected?.(router)
        },
      }
    },
  }
}

const linkTo = (destinationRouterId: string, id: string, iteration = 1) => ({
  id,
  destinationRouterId,
  protocol: 'tls',
  costTags: [],
  dialAddress: `tls:${destinationRouterId}:6000`,
  iteration,
  connections: undefined,
})

test('a link that one replica is told of carries paths on all', async () => {
  await using replicas = await startReplicas({ replicas: 2 })
  const { one, two } = replicas
  const a = one.connect('a')
  two.connect('b')
  await a.report(['b', 'l1'])
  expect(one.topology.path('a', 'b')).toEqual({ routerIds: ['a', 'b'], linkIds: ['l1'], cost: 130_011 })
  await until(() => expect(two.topology.path('b', 'a')?.linkIds).toEqual(['l1']))
  expect(one.events).toMatchObject([
    {
      namespace: 'fabric.links',
      event_type: 'routerLinkNew',
      link_id: 'l1',
      src_router_id: 'a',
      dst_router_id: 'b',
      protocol: 'tls',
      dial_address: 'tls:b:6000',
      cost: 1,
    },
  ])
})

test('a link carries paths when its other end has verified the router that reports it', async () => {
  await using replicas = await startReplicas({ replicas: 2, areAccepted: false })
  const { one, two } = replicas
  const a = one.connect('a')
  const b = two.connect('b')
  await a.report(['b', 'l1'])
  await b.verify('a', 'of c')
  await one.connect('c').verify('a', 'of a')
  expect(one.topology.path('a', 'b')).toBeUndefined()
  await b.verify('a', 'of a')
  for (const { topology } of [one, two])
    await until(() => expect(topology.path('a', 'b')?.linkIds).toEqual(['l1']))

  await a.report(['b', 'l2'], ['b', 'l1', 2])
  expect([...one.topology.table.all()]).toMatchObject([{ isConfirmed: true }, { isConfirmed: true }])
})

test.each(['metrics', 'report'])('the %s of the other end confirm a link', async (how) => {
  await using replicas = await startReplicas({ areAccepted: false })
  const { one } = replicas
  const a = one.connect('a')
  const [b, c] = [one.connect('b'), one.connect('c')]
  await a.report(['b', 'l1'])
  for (const router of [c, b]) {
    expect(one.topology.path('a', 'b')).toBeUndefined()
    if (how === 'metrics') await router.measure({ 'link.l1.latency': 5 })
    else await router.report(['a', 'l1'])
  }
  expect(one.topology.path('a', 'b')?.linkIds).toEqual(['l1'])
  expect([...one.topology.table.all()]).toMatchObject([{ id: 'l1', sourceId: 'a', destinationId: 'b' }])
})

test('a router cannot accept links for another one, or links that it has reported itself', async () => {
  await using replicas = await startReplicas({ areAccepted: false })
  const { one } = replicas
  const a = one.connect('a')
  one.connect('b')
  await a.report(['b', 'l1'])
  await a.report(['b', 'l1'], ['a', 'l1'])
  await a.verify('b', 'of b')
  await a.measure({ 'link.l1.latency': 5 })
  await a.measure({ 'link.l1.latency': 5 }, 'b')
  expect(one.topology.path('a', 'b')).toBeUndefined()
})

test('a link and its acceptance at the same time confirm it, through any replicas', async () => {
  await using replicas = await startReplicas({ replicas: 2, areAccepted: false })
  const { one, two } = replicas
  const [a, b] = [one.connect('a'), two.connect('b')]
  await Promise.all([a.report(['b', 'l1']), b.verify('a', 'of a')])
  for (const { topology } of [one, two])
    await until(() => expect(topology.path('a', 'b')?.linkIds).toEqual(['l1']))
})

test('a replica that starts later, or receives no hints, reads the links', async () => {
  await using away = await testBus()
  await using replicas = await startReplicas({ replicas: 2, busUrl: away.url })
  await away.stop()
  const { one, two } = replicas
  const a = one.connect('a')
  two.connect('b')
  await a.report(['b', 'l1'], ['b', 'l2'])
  await until(() => expect([...two.topology.table.all()].map(({ id }) => id).sort()).toEqual(['l1', 'l2']))
  await a.fault('l1')
  await until(() => expect([...two.topology.table.all()].map(({ id }) => id)).toEqual(['l2']))
})

test('a hint that is lost is noticed', async () => {
  await using replicas = await startReplicas()
  replicas.one.connect('a')
  replicas.one.connect('b')
  await replicas.db.query(sql`
    insert into link (id, source_id, destination_id, protocol, dial_address, iteration, source_latency_ms,
                      destination_latency_ms, replica_id)
    values ('l1', 'a', 'b', 'tls', 'tls:b:6000', 1, 1, 1, 'c9')`)
  await until(() => expect(replicas.one.topology.path('a', 'b')?.cost).toBe(13))
})

test('a link that is dialed again has no latencies, and reports of earlier iterations have no effect', async () => {
  await using replicas = await startReplicas()
  const a = replicas.one.connect('a')
  const b = replicas.one.connect('b')
  await a.report(['b', 'l1', 2])
  await b.measure({ 'link.l1.latency': 5, 'link.l1.queue_time': 2 })
  await a.measure({ 'link.l1.latency': 3 })
  const [link] = replicas.one.topology.table.all()
  expect(link).toMatchObject({ sourceLatencyMs: 3, destinationLatencyMs: 7, iteration: 2 })
  await a.report(['b', 'l1', 1])
  await a.report(['b', 'l1', 2])
  await b.fault('l1', FaultSubject.LINK, 1)
  expect([...replicas.one.topology.table.all()]).toEqual([link])
  await a.report(['b', 'l1', 3])
  expect([...replicas.one.topology.table.all()]).toMatchObject([{ sourceLatencyMs: 65_000, iteration: 3 }])
  expect(replicas.one.left).toEqual([])
})

test('the first report of a failed link deletes it, circuits leave it, and the other router is told', async () => {
  await using replicas = await startReplicas({ replicas: 2 })
  const { one, two } = replicas
  const a = one.connect('a')
  const b = two.connect('b')
  await a.report(['b', 'l1', 4])
  await until(() => expect(two.topology.path('a', 'b')).toBeDefined())
  await b.fault('l1', FaultSubject.LINK, 4)
  await a.fault('l1', FaultSubject.LINK, 4)
  expect(two.topology.path('a', 'b')).toBeUndefined()
  await until(() => expect(one.topology.path('a', 'b')).toBeUndefined())
  expect([one.left, two.left]).toEqual([[], ['l1']])
  expect(two.sent.map(({ to, message }) => [to, Fault.decode(message.body ?? Buffer.alloc(0))])).toEqual([
    ['a', { subject: FaultSubject.LINK, id: 'l1', iteration: 4 }],
  ])
  expect(two.events).toMatchObject([{ event_type: 'fault', link_id: 'l1', src_router_id: 'a' }])
})

test('a link that a router does not have when it gets a route fails at both ends, and circuits leave it', async () => {
  await using replicas = await startReplicas()
  const { one } = replicas
  const a = one.connect('a')
  one.connect('b')
  await a.report(['b', 'l1', 4], ['b', 'l2'])
  await one.concern.linkUnknown('c', 'l1')
  expect(one.sent).toEqual([])
  await one.concern.linkUnknown('b', 'l1')
  expect(one.topology.path('a', 'b')?.linkIds).toEqual(['l2'])
  expect(one.left).toEqual(['l1'])
  expect(
    one.sent.map(({ to, message }) => [to, Fault.decode(message.body ?? Buffer.alloc(0)).iteration]),
  ).toEqual([
    ['a', 4],
    ['b', 4],
  ])
})

test('links that a router leaves out of a full report are deleted at once', async () => {
  await using replicas = await startReplicas()
  const { one } = replicas
  const [a, b] = [one.connect('a'), one.connect('b')]
  await b.report(['c', 'l3'])
  await a.report(['b', 'l1'], ['c', 'l2'])
  await a.reportAll(['c', 'l2'])
  expect([...one.topology.table.all()].map(({ id }) => id).sort()).toEqual(['l2', 'l3'])
  expect(one.left).toEqual(['l1'])
})

test('circuits leave a duplicate before the other router is told to close it', async () => {
  await using replicas = await startReplicas()
  const { one } = replicas
  const a = one.connect('a')
  one.connect('b')
  await a.report(['b', 'l1'], ['b', 'l2'])
  const sentBefore: number[] = []
  one.left.push = (id) => sentBefore.push(one.sent.length, id.length)
  await a.fault('l1', FaultSubject.LINK_DUPLICATE)
  expect(sentBefore).toEqual([0, 2])
  expect(one.sent.map(({ to }) => to)).toEqual(['b'])
  expect(one.events.map(({ event_type }) => event_type)).toEqual([
    'routerLinkNew',
    'routerLinkNew',
    'duplicate',
  ])
})

test('what a router reports while the database is away takes effect in order when it is back', async () => {
  await using replicas = await startReplicas()
  const { one, database } = replicas
  const a = one.connect('a')
  await a.report(['b', 'l1'])
  database.isAway = true
  await a.report(['b', 'l2'], ['b', 'l3'])
  await Promise.all([a.fault('l1'), a.fault('l2')])
  await a.verify('b', 'of b')
  expect(a.replies).toHaveLength(1)
  database.isAway = false
  await until(() => expect(one.left).toEqual(['l1', 'l2']))
  expect([...one.topology.table.all()].map(({ id }) => id)).toEqual(['l3'])
})

test.each([
  ['a link', 'report-links', ['l1', 'l2'], []],
  ['a fault', 'delete-failed-links', ['l2'], ['l1']],
])('%s is known although the database has not answered', async (_what, statement, links, left) => {
  await using replicas = await startReplicas()
  const { one, database } = replicas
  const a = one.connect('a')
  await a.report(['b', 'l1'])
  database.losesAnswerOf = statement
  await a.report(['b', 'l2'])
  if (left.length > 0) await a.fault('l1')
  await until(() => expect([...one.topology.table.all()].map(({ id }) => id).sort()).toEqual(links))
  await until(() => expect(one.left).toEqual(left))
})

test('what a router has reported on a former connection has no effect on the links of the next one', async () => {
  await using replicas = await startReplicas()
  const { one, database } = replicas
  const before = one.connect('a')
  database.isAway = true
  await before.report(['b', 'l1'])
  before.disconnect()
  database.isAway = false
  await one.connect('a').report(['b', 'l2'])
  expect([...one.topology.table.all()].map(({ id }) => id)).toEqual(['l2'])
})

test('links that a router has not reported are deleted when the database is back', async () => {
  await using replicas = await startReplicas({ confirmMs: 0 })
  const { one, database } = replicas
  const before = one.connect('a')
  one.connect('b')
  await before.report(['b', 'l1'], ['b', 'l2'], ['b', 'l3'])
  before.disconnect()
  const a = one.connect('a')
  database.isAway = true
  await Promise.all([a.report(['b', 'l2']), a.report(['b', 'l3'])])
  database.isAway = false
  await until(() => expect(one.left).toEqual(['l1']))
  expect([...one.topology.table.all()].map(({ id }) => id).sort()).toEqual(['l2', 'l3'])
})

test('a router reports its own links only', async () => {
  await using replicas = await startReplicas()
  const { one } = replicas
  const [a, b, c] = ['a', 'b', 'c'].map((id) => one.connect(id))
  await a?.report(['b', 'l1'])
  await b?.report(['c', 'l1', 9])
  await c?.report(['nowhere', 'l2'], ['c', 'l3'], ['a', 'l 4'], ['a', ''])
  await c?.fault('l1')
  await c?.measure({ 'link.l1.latency': 1 })
  await c?.measure({ 'link.l1.latency': 1 }, 'a')
  expect([...one.topology.table.all()]).toMatchObject([
    { id: 'l1', sourceId: 'a', destinationId: 'b', iteration: 1, sourceLatencyMs: 65_000 },
  ])
})

test('latencies are averaged, and stored when they have changed enough', async () => {
  await using replicas = await startReplicas()
  const a = replicas.one.connect('a')
  await a.report(['b', 'l1'])
  const version = async () => (await replicas.db.query(sql`select version from link`)).rows[0]?.version
  await a.measure({ 'link.l1.latency': 20 })
  const before = await version()
  await a.measure({ 'link.l1.latency': 22 })
  await a.measure({ 'link.l1.latency': -5, 'link.l2.latency': 5 })
  await a.measure({ 'link.l1.latency': Number.NaN })
  expect(await version()).toBe(before)
  await a.measure({ 'link.l1.latency': 40 })
  expect([...replicas.one.topology.table.all()]).toMatchObject([{ sourceLatencyMs: 30 }])
})

test('links of a router that stays offline are deleted, those of one that returns are kept', async () => {
  await using replicas = await startReplicas({ graceMs: 0 })
  const { one } = replicas
  const a = one.connect('a')
  const b = one.connect('b')
  await a.report(['b', 'ab'])
  await b.report(['a', 'ba'])
  a.disconnect()
  expect(one.topology.path('b', 'a')).toBeUndefined()
  await until(() => expect([...one.topology.table.all()].map(({ id }) => id)).toEqual(['ba']))
  await until(() => expect(one.left).toEqual(['ab']))
  await one.connect('a').report()
  expect(one.topology.path('b', 'a')?.linkIds).toEqual(['ba'])
})

test('links that a router does not report after it connects again are deleted', async () => {
  await using replicas = await startReplicas({ confirmMs: 10 })
  const { one } = replicas
  const before = one.connect('a')
  one.connect('b')
  await before.report(['b', 'l1'], ['b', 'l2'])
  before.disconnect()
  const a = one.connect('a')
  await a.report(['b', 'l2'])
  await a.report(['b', 'l3'])
  await until(() => expect([...one.topology.table.all()].map(({ id }) => id).sort()).toEqual(['l2', 'l3']))
  await until(() => expect(one.left).toEqual(['l1']))
})

test('links to a router that is deleted are deleted', async () => {
  await using replicas = await startReplicas()
  const { one } = replicas
  const a = one.connect('a')
  await a.report(['b', 'l1'], ['c', 'l2'])
  await replicas.db.query(sql`delete from router where id = 'b'`)
  replicas.rows.delete('b')
  await until(() => expect([...one.topology.table.all()].map(({ id }) => id)).toEqual(['l2']))
  await until(() => expect(one.left).toEqual(['l1']))
})

test('a router is verified by any of the certificates of its peer, unless it is disabled', async () => {
  await using replicas = await startReplicas()
  const { one, rows } = replicas
  const a = one.connect('a')
  await a.verify('b', 'of an authority', 'of b')
  await a.verify('b', 'of c')
  await a.verify('b')
  await a.verify('nobody', 'of b')
  rows.set('b', { ...newRouter('of b'), disabled: true })
  await a.verify('b', 'of b')
  rows.set('b', newRouter(undefined))
  await a.verify('b', 'of b')
  rows.set('b', { ...newRouter('new'), formerFingerprints: ['old'], unverifiedFingerprint: 'newest' })
  for (const fingerprint of ['old', 'new', 'newest']) await a.verify('b', fingerprint)
  const success = a.replies.map(({ type, headers }) => [
    type,
    decodeBool(headers?.get(headerKey.resultSuccess) ?? Buffer.alloc(0)),
  ])
  const refused = [contentType.result, false]
  const verified = [contentType.result, true]
  const expected = [verified, refused, refused, refused, refused, refused, verified, verified, verified]
  expect(success).toEqual(expected)
})

test('an administrator takes a link down, changes its cost and deletes it', async () => {
  await using replicas = await startReplicas({ replicas: 2 })
  const { one, two } = replicas
  const a = one.connect('a')
  one.connect('b')
  await a.report(['b', 'l1'])
  expect(await one.concern.setLink('l1', { staticCost: 5 })).toMatchObject({ staticCost: 5, isDown: false })
  await until(() => expect(two.topology.path('a', 'b')?.cost).toBe(130_015))
  expect(await one.concern.setLink('l1', { isDown: true })).toMatchObject({ staticCost: 5, isDown: true })
  expect(one.topology.path('a', 'b')).toBeUndefined()
  expect(await one.concern.setLink('nowhere', { isDown: true })).toBeUndefined()
  expect(one.left).toEqual(['l1'])
  await one.concern.deleteLink('l1')
  expect(one.sent.map(({ to }) => to)).toEqual(['a', 'b'])
  expect([...one.topology.table.all()]).toEqual([])
  await one.concern.deleteLink('l1')
  expect(one.sent.map(({ to }) => to)).toEqual(['a', 'b', 'a', 'b'])
})
