import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { openCosts } from '../src/domain/terminator-costs.js'
import { MAX_CANDIDATES } from '../src/limits.js'
import { costsOf, saveCosts } from '../src/store/terminator-cost.js'
import { flushCosts } from '../src/terminators/flush-costs.js'
import type { TargetRequest } from '../src/terminators/terminator-pool.js'
import { startTerminators } from './router-terminators.js'
import { log } from './store.js'

type Started = Awaited<ReturnType<typeof startTerminators>>

const request = (members: Partial<TargetRequest> = {}): TargetRequest => ({
  serviceId: 'wiki',
  instanceId: '',
  stickinessToken: '',
  pathCost: () => 0,
  excluded: new Set(),
  ...members,
})

const insert = (
  { db }: Started,
  id: string,
  routerId: string,
  members: { cost?: number; instance?: string } = {},
) =>
  db.query(sql`
    insert into terminator (id, service_id, router_id, binding, address, host_id, cost, instance_id, peer_data)
    values (${id}, 'wiki', ${routerId}, 'edge', ${`address of ${id}`}, 'alice', ${members.cost ?? 0},
            ${members.instance ?? ''}, '{"1003":"AP8B"}')`)

const selected = async ({ concern }: Started, members: Partial<TargetRequest> = {}) =>
  (await concern.pool.select(request(members))).target.id

test('a target has all that a route and a client need', async () => {
  await using started = await startTerminators({ strategy: 'sticky' })
  await insert(started, 't1', 'r1')
  expect(await started.concern.pool.select(request())).toEqual({
    target: {
      id: 't1',
      routerId: 'r1',
      serviceId: 'wiki',
      binding: 'edge',
      address: 'address of t1',
      instanceId: '',
      hostId: 'alice',
      peerData: new Map([[1003, Buffer.from([0, 255, 1])]]),
    },
    stickinessToken: 't1',
  })
})

test('the costs of terminator, path, circuits and failed dials add up', async () => {
  await using started = await startTerminators()
  const { pool } = started.concern
  await insert(started, 't1', 'r1', { cost: 1 })
  await insert(started, 't2', 'r2')
  const pathCost = (routerId: string) => (routerId === 'r2' ? 2 : 0)
  const { target } = await pool.select(request({ pathCost }))
  expect(target.id).toBe('t1')
  pool.circuitOpened('t1')
  expect(await selected(started, { pathCost })).toBe('t2')
  pool.circuitClosed('t1')
  expect(await selected(started, { pathCost })).toBe('t1')
  pool.dialFailed(target)
  expect(await selected(started, { pathCost })).toBe('t2')
  for (let i = 0; i < 10; i++) pool.dialSucceeded(target)
  expect(await selected(started, { pathCost })).toBe('t1')
})

test('terminators that failed in this dial, and those that cannot be reached, are not selected', async () => {
  await using started = await startTerminators()
  await insert(started, 't1', 'r1')
  await insert(started, 't2', 'r2', { cost: 9 })
  expect(await selected(started, { excluded: new Set(['t1']) })).toBe('t2')
  expect(await selected(started, { pathCost: (id) => (id === 'r2' ? 0 : undefined) })).toBe('t2')
})

test('a dial reaches a connected router behind any number of cheaper terminators of others', async () => {
  await using started = await startTerminators()
  await started.db.query(sql`
    insert into terminator (id, service_id, router_id, binding, address, host_id, peer_data)
    select 'offline-' || n, 'wiki', 'r1', 'edge', 'address', 'alice', '{}'
      from generate_series(1, ${MAX_CANDIDATES}::int) as n`)
  await insert(started, 't2', 'r2', { cost: 9 })
  await started.db.query(sql`
    insert into replica (id, incarnation, lease_ends_at) values ('c9', gen_random_uuid(), now() + interval '1 hour')`)
  await started.db.query(sql`
    insert into presence (router_id, replica_id, hostname, supported_protocols, sync_status, version_info,
                          link_listeners, connected_at)
    values ('r2', 'c9', '', '[]', '', '{}', '', now())`)
  expect(await selected(started, { pathCost: (id) => (id === 'r2' ? 0 : undefined) })).toBe('t2')
})

test('a sticky client keeps its terminator', async () => {
  await using started = await startTerminators({ strategy: 'sticky' })
  await insert(started, 't1', 'r1', { cost: 1 })
  await insert(started, 't2', 'r2', { cost: 100 })
  expect(await selected(started, { stickinessToken: 't2' })).toBe('t2')
  expect(await selected(started, { stickinessToken: 't2', excluded: new Set(['t2']) })).toBe('t1')
})

test('clients see why there is no terminator', async () => {
  await using started = await startTerminators()
  const failure = (members: Partial<TargetRequest> = {}) =>
    started.concern.pool.select(request(members)).catch((err: Error) => err.message)
  expect(await failure()).toBe('service wiki has no terminators')
  await insert(started, 't1', 'r1', { instance: 'a' })
  expect(await failure()).toBe('service wiki has no terminators for instanceId ')
  expect(await failure({ instanceId: 'b' })).toBe('service wiki has no terminators for instanceId b')
  expect(await failure({ instanceId: 'a', pathCost: () => undefined })).toBe(
    'service wiki has no online terminators for instanceId a',
  )
  expect(await failure({ serviceId: 'gone' })).toBe('invalid service')
})

test('dials at the same time share a query, and each has its own terminators', async () => {
  await using started = await startTerminators()
  const instances = Array.from({ length: 50 }, (_, i) => `i${i}`)
  for (const instance of instances) await insert(started, `t-${instance}`, 'r1', { instance })
  const found = await Promise.all(instances.map((instanceId) => selected(started, { instanceId })))
  expect(found).toEqual(instances.map((instance) => `t-${instance}`))
})

test('the cost of a terminator at other replicas counts', async () => {
  await using started = await startTerminators()
  await insert(started, 't1', 'r1')
  await insert(started, 't2', 'r2', { cost: 5 })
  await saveCosts(started.db, 'c2', new Map([['t1', 6]]))
  await saveCosts(started.db, 'c1', new Map([['t2', 100]])) // its own, which it knows better
  expect(await selected(started)).toBe('t2')
  expect(await costsOf(started.db, ['t1', 't2'])).toEqual(
    new Map([
      ['t1', 6],
      ['t2', 100],
    ]),
  )
})

test('a replica saves its costs as they change, and leaves none behind', async () => {
  await using started = await startTerminators()
  const { db } = started
  await insert(started, 't1', 'r1')
  const costs = openCosts()
  const saved = async () => (await costsOf(db, ['t1'])).get('t1')
  await saveCosts(db, 'c1', new Map([['t1', 50]])) // of an earlier run
  {
    await using _flushing = flushCosts({
      db,
      replicaId: 'c1',
      replicas: () => new Set(),
      costs,
      log,
      flushMs: 5,
    })
    while ((await saved()) !== undefined);
    costs.circuitOpened('t1')
    costs.circuitOpened('deleted')
    while ((await saved()) !== 2);
    costs.circuitClosed('t1')
    while ((await saved()) !== undefined);
    costs.circuitOpened('t1')
    while ((await saved()) !== 2);
  }
  expect(await saved()).toBeUndefined()
})

test('circuits that other replicas have ended cost nothing after a minute', async () => {
  await using started = await startTerminators()
  const { db } = started
  for (const id of ['t1', 't2']) await insert(started, id, 'r1')
  await db.query(sql`
    insert into circuit (id, client_id, router_ids, terminator_id, controller_id)
    select 'x' || i, 's', '{r1}', terminator_id, controller_id
      from (values (1, 't1', 'c1'), (2, 't1', 'c1'), (3, 't1', 'c2'), (4, 't2', 'c1'))
           as given (i, terminator_id, controller_id)`)
  const costs = openCosts()
  for (let i = 0; i < 5; i++) costs.circuitOpened('t2')
  await using _flushing = flushCosts({
    ...{ db, replicaId: 'c1', replicas: () => new Set(['c2']), costs, log },
    ...{ flushMs: 5, creditMs: 5 },
  })
  const saved = async (id: string) => (await costsOf(db, [id])).get(id)
  while ((await saved('t1')) !== 4 || (await saved('t2')) !== 2);
  await db.query(sql`delete from circuit where terminator_id = 't2'`)
  while ((await saved('t2')) !== undefined);
  expect(await saved('t1')).toBe(4)
})

test('dynamic costs end with their terminator', async () => {
  await using started = await startTerminators()
  await insert(started, 't1', 'r1')
  await saveCosts(started.db, 'c1', new Map([['t1', 6]]))
  await started.db.query(sql`delete from terminator`)
  expect(await costsOf(started.db, ['t1'])).toEqual(new Map())
})
