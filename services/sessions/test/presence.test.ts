import { randomUUID } from 'node:crypto'
import { BlockList } from 'node:net'
import { edgeType, encodeVersion, headerKey } from '@overlay/channel'
import { type Bus, noBus } from '@overlay/store/change-log'
import pino from 'pino'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openControl } from '../src/control-channel.js'
import { NO_FEATURES } from '../src/domain/router-features.js'
import { openClientRouterList } from '../src/routers/client-routers.js'
import { openPresence } from '../src/routers/presence.js'
import { connectionsOf } from '../src/store/router.js'
import { type Replica, startControlNetwork, type TestNetwork } from './control.js'
import { connectRouter, type RouterKey, untilClosed } from './test-router.js'

const log = pino({ level: 'silent' })

let network: TestNetwork
let one: Replica
let two: Replica
beforeAll(async () => {
  network = await startControlNetwork({ hasBus: true })
  one = await network.replica('one')
  two = await network.replica('two')
})
afterAll(() => network[Symbol.asyncDispose]())

const shown = async (id: string) => (await connectionsOf(network.db, [id])).get(id)

test('a router that says hello is shown with what it says, and with the state of its synchronization', async () => {
  const key = await network.createRouter('a')
  const router = await connectRouter({ port: one.port, key })
  await router.message(edgeType.serverHello)
  await expect
    .poll(() => shown(key.id))
    .toEqual({
      hostname: 'edge.example',
      supportedProtocols: { tls: 'tls://edge.example:3022' },
      syncStatus: 'SYNC_HELLO_WAIT',
      versionInfo: { version: 'v1.1.13', revision: 'r', buildDate: 'd', os: 'o', arch: 'a' },
    })
  const channel = one.control.channels.get(key.id)
  if (!channel) throw new Error('not connected')
  one.control.sync.started(channel, 'api-sessions')
  await expect.poll(async () => (await shown(key.id))?.syncStatus).toBe('SYNC_IN_PROGRESS')
  one.control.sync.done(channel, 'api-sessions')
  await expect.poll(async () => (await shown(key.id))?.syncStatus).toBe('SYNC_DONE')
  router.channel.close('done')
  await expect.poll(() => shown(key.id)).toBeUndefined()
})

test('each replica knows what the routers of all others can do', async () => {
  const key = await network.createRouter('features')
  const version = encodeVersion({ version: 'v1.6.20', revision: '', buildDate: '', os: '', arch: '' })
  const router = await connectRouter({ port: one.port, key, headers: [[headerKey.version, version]] })
  const features = {
    hasDataModel: true,
    verifiesTokens: true,
    needsSignedSessions: false,
    isGrouped: false,
    comparesModel: false,
  }
  expect(one.control.channels.get(key.id)?.features).toEqual(features)
  const knownTo = ({ control }: Replica) => control.presence.of(key.id).map((presence) => presence.features)
  await expect.poll(() => knownTo(two)).toEqual([features])
  const late = await network.replica('features') // reads the table
  expect(knownTo(late)).toEqual([features])
  const clients = openClientRouterList(late.directory, late.control.presence)
  expect(clients.lastFeaturesOf([key.id, 'nobody'])).toEqual([features])
  await late[Symbol.asyncDispose]()
  router.channel.close('done')
})

test('beside a replica of 0.1.0, routers evaluate nothing, and are not taken for ones that need signed tokens', async () => {
  const [current, offline, former] = await Promise.all([
    network.createRouter('current'),
    network.createRouter('offline'),
    network.createRouter('former'),
  ])
  const version = encodeVersion({ version: 'v1.7.2', revision: '', buildDate: '', os: '', arch: '' })
  const router = await connectRouter({
    port: one.port,
    key: current,
    headers: [[headerKey.version, version]],
  })
  const late = await network.replica('beside')
  const { presence } = late.control
  const clients = openClientRouterList(late.directory, presence)
  const ids = [current.id, offline.id]
  await expect.poll(() => clients.evaluating(ids)).toEqual([current.id])
  await expect.poll(() => clients.lastFeaturesOf(ids)).toHaveLength(2)

  await network.db.query(sql`
    insert into replica (id, incarnation, version, lease_ends_at)
    values ('former', ${randomUUID()}, 1, now() + interval '1 minute')`)
  await network.db.query(sql`
    insert into presence (router_id, replica_id, hostname, supported_protocols, sync_status, version_info,
                          link_listeners, connected_at)
    values (${former.id}, 'former', '', '{}', 'SYNC_DONE', '{"version": "v1.1.13"}', '', now())`)
  await expect.poll(() => presence.isOnline(former.id)).toBe(true)
  expect(clients.evaluating(ids)).toEqual([])
  expect(clients.lastFeaturesOf(ids)).toMatchObject([{ needsSignedSessions: true }])

  await network.db.query(sql`delete from replica where id = 'former'`)
  await expect.poll(() => presence.isOnline(former.id)).toBe(false)
  expect(clients.evaluating(ids)).toEqual([current.id])
  expect(clients.lastFeaturesOf(ids)).toHaveLength(2)
  await late[Symbol.asyncDispose]()
  router.channel.close('done')
})

test('each replica has in memory which routers are connected to any', async () => {
  const key = await network.createRouter('b')
  const changes: string[] = []
  using _listening = two.control.presence.onChange({ routerChanged: (id) => void changes.push(id) })
  const [first, second] = [
    await connectRouter({ port: one.port, key }),
    await connectRouter({ port: two.port, key }),
  ]
  const replicasOf = (replica: Replica) =>
    replica.control.presence
      .of(key.id)
      .map(({ replicaId }) => replicaId)
      .join()
  await expect.poll(() => replicasOf(one)).toBe('two,one')
  await expect.poll(() => replicasOf(two)).toBe('two,one')
  second.channel.close('done')
  await expect.poll(() => replicasOf(one)).toBe('one')
  await expect.poll(() => replicasOf(two)).toBe('one')
  first.channel.close('done')
  await expect.poll(() => two.control.presence.isOnline(key.id)).toBe(false)
  expect(changes).toEqual([key.id, key.id])
})

test('a replica that missed hints reads the rows that it lacks', async () => {
  const key = await network.createRouter('c')
  await network.bus?.stop()
  const router = await connectRouter({ port: one.port, key })
  await expect.poll(() => two.control.presence.isOnline(key.id)).toBe(true)
  router.channel.close('done')
  await expect.poll(() => two.control.presence.isOnline(key.id)).toBe(false)
  await network.bus?.start()
})

test('the routers of a replica that was killed are offline when its lease has ended', async () => {
  const key = await network.createRouter('d')
  const killed = await network.replica('killed', { leaseMs: 600 })
  const router = await connectRouter({ port: killed.port, key })
  await expect.poll(() => one.control.presence.isOnline(key.id)).toBe(true)
  const gone: string[] = []
  using _listening = one.control.presence.onChange({ replicaEnded: (id) => void gone.push(id) })
  await Promise.all([killed.kill(), untilClosed(router)])
  await expect.poll(() => one.control.presence.isOnline(key.id)).toBe(false)
  expect(gone).toEqual(['killed'])
  expect(await shown(key.id)).toBeUndefined()
  const { rows } = await network.db.query(sql`select from presence where router_id = ${key.id}`)
  expect(rows).toHaveLength(1) // its rows are there, but count no more
})

test('a replica that stops is gone at once', async () => {
  const key = await network.createRouter('e')
  const stopping = await network.replica('stopping')
  const router = await connectRouter({ port: stopping.port, key })
  await expect.poll(() => one.control.presence.isOnline(key.id)).toBe(true)
  await Promise.all([stopping[Symbol.asyncDispose](), untilClosed(router)])
  const { rows } = await network.db.query(sql`select from replica where id = 'stopping'`)
  expect(rows).toHaveLength(0)
  await expect.poll(() => one.control.presence.isOnline(key.id)).toBe(false)
})

test('a replica that fails while it opens gives its lease back', async () => {
  const failure = new Error('no routers')
  const directory: Replica['directory'] = {
    ...one.directory,
    onChange() {
      throw failure
    },
  }
  const { changeLog, bus } = one
  const listen = {
    address: '127.0.0.1:0',
    controllerId: 'failing',
    limits: { connections: 1, connectionsPerSource: 1, proxies: new BlockList() },
    fetchKey: () => Promise.reject(failure),
  }
  await expect(openControl({ changeLog, bus, directory, log, listen })).rejects.toBe(failure)
  const { rows } = await network.db.query(sql`select from replica where id = 'failing'`)
  expect(rows).toHaveLength(0)
})

test('a process that takes the id of a killed one deletes its rows', async () => {
  const key = await network.createRouter('f')
  const killed = await network.replica('restarted')
  const router = await connectRouter({ port: killed.port, key })
  await Promise.all([killed.kill(), untilClosed(router)])
  expect(await shown(key.id)).toBeDefined()
  const restarted = await network.replica('restarted')
  expect(await shown(key.id)).toBeUndefined()
  await restarted[Symbol.asyncDispose]()
})

test('a replica writes its rows again when the database has lost them', async () => {
  const key = await network.createRouter('g')
  const replica = await network.replica('crashed', { leaseMs: 600 })
  const router = await connectRouter({ port: replica.port, key })
  await expect.poll(async () => (await shown(key.id))?.syncStatus).toBe('SYNC_HELLO_WAIT') // the last write
  await network.db.query(sql`delete from replica where id = 'crashed'`) // as the crash of the server does
  expect(await shown(key.id)).toBeUndefined()
  await expect.poll(() => shown(key.id)).toBeDefined()
  router.channel.close('done')
  await replica[Symbol.asyncDispose]()
})

test('what a replica writes after the database has lost all rows reaches the others', async () => {
  const keys = await Promise.all(['h', 'i', 'j'].map((name) => network.createRouter(name)))
  const [first, second, later] = keys as [RouterKey, RouterKey, RouterKey]
  const [left, right] = [
    await network.replica('left', { leaseMs: 3000 }),
    await network.replica('right', { leaseMs: 3000 }),
  ]
  const routers = [
    await connectRouter({ port: left.port, key: first }),
    await connectRouter({ port: left.port, key: second }),
  ]
  const seen = () => keys.map(({ id }) => right.control.presence.isOnline(id))
  await expect.poll(seen).toEqual([true, true, false])
  const changed: string[] = []
  using _listening = right.control.presence.onChange({
    routerChanged: (id) => void changed.push(id),
    replicaEnded: (id) => void changed.push(id),
  })
  await network.db.query(sql`delete from replica where id in ('left', 'right')`) // as the crash of the server does
  await expect.poll(async () => (await connectionsOf(network.db, [first.id, second.id])).size).toBe(2)
  expect(changed).toEqual([])
  routers.push(await connectRouter({ port: left.port, key: later }))
  await expect.poll(seen).toEqual([true, true, true])
  routers[0]?.channel.close('done')
  await expect.poll(seen).toEqual([false, true, true])
  for (const { channel } of routers) channel.close('done')
  for (const replica of [left, right]) await replica[Symbol.asyncDispose]()
})

test('when the database has lost all leases, the first replica that looks waits for the others to renew theirs', async () => {
  const open = (replicaId: string, bus: Pick<Bus, 'publish' | 'subscribe' | 'onChange'> = noBus) =>
    openPresence({ db: network.db, bus, log, replicaId, leaseMs: 60_000 })
  let reconnected: (connected: boolean) => void = () => undefined
  await using _other = await open('other')
  const first = await open('first', {
    ...noBus,
    onChange(listener) {
      reconnected = listener
      return noBus.onChange(listener)
    },
  })
  expect(first.replicas()).toContain('other')
  await network.db.query(sql`delete from replica where id in ('first', 'other')`)
  reconnected(true) // leads to a look
  const renewed = () => network.db.query(sql`select from replica where id = 'first'`)
  await expect.poll(async () => (await renewed()).rows.length).toBe(1)
  await first[Symbol.asyncDispose]()
  expect(first.replicas()).toContain('other')
})

test('a row that cannot be written keeps no other back', async () => {
  const [poisonous, sound] = [await network.createRouter('k'), await network.createRouter('l')]
  const row = (routerId: string, hostname: string) => ({
    routerId,
    hostname,
    supportedProtocols: {},
    syncStatus: 'SYNC_DONE',
    versionInfo: { version: 'v', revision: '', buildDate: '', os: '', arch: '' },
    linkListeners: '',
    connectedAt: new Date().toISOString(),
    features: NO_FEATURES,
  })
  await using presence = await openPresence({ db: network.db, bus: noBus, log, replicaId: 'writer' })
  await Promise.all([presence.put(row(poisonous.id, 'a\0b')), presence.put(row(sound.id, 'edge.example'))])
  expect((await shown(sound.id))?.hostname).toBe('edge.example')
  expect(await shown(poisonous.id)).toBeUndefined()
  presence.remove(sound.id)
})

test.each([
  ['is disabled', (id: string) => network.updateRouter(id, { disabled: true }, one)],
  ['is deleted', (id: string) => network.deleteRouter(id, one)],
  ['gets a new enrollment', (id: string) => network.resetEnrollment(id, one)],
])('a router that %s loses its channels to all replicas', async (what, act) => {
  const key = await network.createRouter(what)
  const routers = [
    await connectRouter({ port: one.port, key }),
    await connectRouter({ port: two.port, key }),
  ] as const
  const closed = Promise.all(routers.map(untilClosed))
  await act(key.id)
  expect(one.control.channels.get(key.id)).toBeUndefined() // before the answer
  await closed
  await expect.poll(() => shown(key.id)).toBeUndefined()
})
