import { edgeType } from '@overlay/channel'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectionsOf } from '../src/store/router.js'
import { type Replica, startControlNetwork, type TestNetwork } from './control.js'
import { connectRouter, untilClosed } from './test-router.js'

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
  one.control.sync.started(channel)
  await expect.poll(async () => (await shown(key.id))?.syncStatus).toBe('SYNC_IN_PROGRESS')
  one.control.sync.done(channel)
  await expect.poll(async () => (await shown(key.id))?.syncStatus).toBe('SYNC_DONE')
  router.channel.close('done')
  await expect.poll(() => shown(key.id)).toBeUndefined()
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
  using _listening = one.control.presence.onChange({ replicaGone: (id) => void gone.push(id) })
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
