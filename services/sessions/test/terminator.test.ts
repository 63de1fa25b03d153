import { randomUUID } from 'node:crypto'
import type { Change } from '@overlay/rpc'
import { recordingDeletions, withLoadedRows } from '@overlay/store/change-log'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { policyEffects } from '../src/consumers/policy.js'
import { sweepStep } from '../src/sweep/sweep-step.js'
import { asClient, type Routers, startRouters } from './routers.js'
import { waitingFor } from './store.js'

const kind = 'terminators'

/** A service, a router, and the smallest body of a terminator. */
async function startTerminators() {
  const store = await startRouters()
  store.services.set('wiki', 'the wiki')
  const router = await store.create('edge-routers', { name: 'r' })
  const body = { service: 'wiki', router, binding: 'transport', address: 'tcp:localhost:1' }
  return { store, router, body, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() }
}

const upto = { timeline: randomUUID(), number: 1 }
const row = (id: string, json: object | null): Change => ({
  kind: 'services',
  id,
  json: json ? Buffer.from(JSON.stringify(json)) : Buffer.alloc(0),
  number: 1,
  atMs: 0,
})

/** As when policy sends changes of services, or all of its services. */
const follow = (store: Routers, how: 'apply' | 'reload', rows: readonly Change[]) =>
  store.db.transaction(undefined, (tx) =>
    how === 'apply'
      ? effects.apply(tx, rows, upto)
      : withLoadedRows(tx, [rows], (loaded) => effects.reload(tx, loaded, upto)),
  )

const effects = recordingDeletions('policy', ['services'], policyEffects({ wake: () => undefined }))

/** As after a load. */
async function sweep({ changeLog, services }: Routers): Promise<void> {
  const names = async (_: string, ids: readonly string[]) =>
    new Map(ids.flatMap((id) => (services.has(id) ? [[id, services.get(id) ?? '']] : [])))
  const never = () => Promise.reject(new Error('there are no sessions'))
  const policy = { findLost: never, findRequiring: never }
  while (await sweepStep({ changeLog, policy, names, heads: async () => ({}) }));
}

test('a terminator shows service and router, and never its secret', async () => {
  await using started = await startTerminators()
  const { store, router, body } = started
  const id = await store.create(kind, {
    ...body,
    cost: 10,
    precedence: 'required',
    identity: 'inst',
    identitySecret: 'c2VjcmV0',
    tags: { a: 'b' },
  })
  const shown = await store.get(kind, id)
  expect(shown).toMatchObject({
    serviceId: 'wiki',
    service: { entity: 'services', id: 'wiki', name: 'the wiki' },
    routerId: router,
    router: {
      _links: { self: { href: `./transit-routers/${router}` } },
      entity: 'transit-routers',
      id: router,
      name: 'r',
    },
    binding: 'transport',
    address: 'tcp:localhost:1',
    identity: 'inst',
    cost: 10,
    dynamicCost: 0,
    precedence: 'required',
    tags: { a: 'b' },
  })
  for (const hidden of ['identitySecret', 'hostId']) expect(shown).not.toHaveProperty(hidden)
  const { rows } = await store.db.query(sql`select after from audit where kind = ${kind}`)
  expect(JSON.stringify(rows)).not.toContain('c2VjcmV0')
})

test('service and router must exist, and an address is required', async () => {
  await using started = await startTerminators()
  const { store, body } = started
  const create = (more: object) => store.create(kind, { ...body, ...more })
  await expect(create({ service: 'nothing' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(create({ router: 'nothing' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(create({ address: '' })).rejects.toMatchObject({ detail: { field: 'address' } })
})

test('a missing binding follows from the address', async () => {
  await using started = await startTerminators()
  const { store, body } = started
  const binding = async (address: string) =>
    (await store.get(kind, await store.create(kind, { ...body, binding: '', address }))).binding
  expect([await binding('udp:localhost:1'), await binding('tcp:localhost:1')]).toEqual(['udp', 'transport'])
})

test('the router of a terminator may change; another service is ignored', async () => {
  await using started = await startTerminators()
  const { store, body } = started
  const id = await store.create(kind, body)
  const other = await store.create('transit-routers', { name: 't' })
  await store.update(kind, id, { service: 'nothing', router: other })
  expect(await store.get(kind, id)).toMatchObject({ serviceId: 'wiki', routerId: other })
  await expect(store.update(kind, id, { router: 'nothing' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('a terminator of a router cannot be updated, but can be deleted', async () => {
  await using started = await startTerminators()
  const { store, body } = started
  const id = await store.create(kind, body)
  await store.db.query(sql`update terminator set is_system = true`)
  await expect(store.update(kind, id, { cost: 1 })).rejects.toMatchObject({
    code: 'ENTITY_CAN_NOT_BE_UPDATED',
  })
  await store.remove(kind, id)
  expect(await store.list(kind, '')).toEqual([])
})

test('a terminator is deleted with its router, of either kind', async () => {
  await using started = await startTerminators()
  const { store, router, body } = started
  const transit = await store.create('transit-routers', { name: 't' })
  await store.create(kind, body)
  await store.create(kind, { ...body, router: transit })
  await store.remove('edge-routers', router)
  expect(await store.list(kind, '')).toMatchObject([{ routerId: transit }])
  await store.remove('transit-routers', transit)
  expect(await store.list(kind, '')).toEqual([])
  const { rows } = await store.db.query(
    sql`select before, after from audit where kind = ${kind} and after is null`,
  )
  expect(rows).toHaveLength(2)
})

test('filters use the names of router and service, as new as policy has them', async () => {
  await using started = await startTerminators()
  const { store, body } = started
  const id = await store.create(kind, body)
  await follow(store, 'apply', [row('wiki', { name: 'the old wiki' }), row('wiki', { name: 'the wiki' })])
  const find = async (filter: string) => (await store.list(kind, filter)).map((found) => found.id)
  expect(await find('router.name = "r" and binding = "transport"')).toEqual([id])
  expect(store.caughtUp()).toBe(0)
  expect(await find('service.name = "the wiki" and router.name = "r" sort by service.name')).toEqual([id])
  expect(await find('service.name contains "old"')).toEqual([])
  expect(store.caughtUp()).toBe(2)
  await expect(find('cost = 1')).rejects.toMatchObject({ code: 'INVALID_FILTER' })
})

test('a terminator is deleted with its service', async () => {
  await using started = await startTerminators()
  const { store, body } = started
  store.services.set('blog', 'blog')
  await store.create(kind, body)
  await store.create(kind, { ...body, service: 'blog' })
  await follow(store, 'apply', [row('wiki', { name: 'w' }), row('wiki', null)])
  expect(await store.list(kind, '')).toMatchObject([{ serviceId: 'blog' }])
  const { rowCount } = await store.db.query(sql`select from known_service`)
  expect(rowCount).toBe(0)
})

test('no terminator is created for a service whose deletion is followed in the meantime', async () => {
  await using started = await startTerminators()
  const { store, body } = started
  let creating: Promise<unknown> | undefined
  await store.db.transaction(undefined, async (tx) => {
    await effects.apply(tx, [row('wiki', null)], upto)
    creating = store.create(kind, body) // policy still answered that the service exists
    creating.catch(() => undefined)
    await waitingFor(store.db)
    store.services.delete('wiki') // when it is asked again, it does not
  })
  await expect(creating).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect(await store.list(kind, '')).toEqual([])
})

test('an update of a terminator locks the router first, which may be deleted in the meantime', async () => {
  await using started = await startTerminators()
  const { store, router, body } = started
  const id = await store.create(kind, body)
  let changing: Promise<unknown> | undefined
  await store.db.transaction(undefined, async (tx) => {
    await tx.query(sql`select from router where id = ${router} for update`)
    changing = store.update(kind, id, { router })
    changing.catch(() => undefined)
    await waitingFor(store.db)
    await tx.query(sql`select from terminator where id = ${id} for update`) // not locked by the waiting update
    await tx.query(sql`delete from terminator where id = ${id}`)
    await tx.query(sql`delete from router where id = ${router}`)
  })
  await expect(changing).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('after a load, terminators of deleted services end, those of newer services do not', async () => {
  await using started = await startTerminators()
  const { store, body } = started
  for (const id of ['gone', 'younger']) store.services.set(id, id)
  for (const service of ['wiki', 'gone', 'younger']) await store.create(kind, { ...body, service })
  store.services.delete('gone')
  await follow(store, 'reload', [row('wiki', { name: 'wiki' })])
  await sweep(store)
  expect(await store.list(kind, 'true sort by service')).toMatchObject([
    { serviceId: 'wiki' },
    { serviceId: 'younger' },
  ])
})

test('clients see the hosting identity and router of a terminator, nothing more', async () => {
  await using started = await startTerminators()
  const { store, router, body } = started
  const id = await store.create(kind, { ...body, identity: 'inst' })
  expect(await store.list(kind, '', asClient)).toEqual([
    {
      _links: { self: { href: `./terminators/${id}` } },
      id,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
      tags: {},
      identity: 'inst',
      routerId: router,
      serviceId: 'wiki',
      service: expect.objectContaining({ id: 'wiki', name: 'the wiki' }),
    },
  ])
})
