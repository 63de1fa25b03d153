import { randomUUID } from 'node:crypto'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { takeReplicaId, writePresence } from '../src/store/presence.js'
import { asClient, context, presenceRow, startRouters } from './routers.js'

test('a transit router stores every written member, on create and on update', async () => {
  await using store = await startRouters()
  const id = await store.create('transit-routers', {
    name: 't',
    cost: 2,
    noTraversal: true,
    disabled: true,
    tags: { x: 'y' },
  })
  const shown = await store.get('transit-routers', id)
  expect(shown).toMatchObject({
    _links: { self: { href: `./transit-routers/${id}` } },
    name: 't',
    cost: 2,
    noTraversal: true,
    disabled: true,
    tags: { x: 'y' },
    isVerified: false,
    isOnline: false,
    fingerprint: null,
    unverifiedCertPem: null,
    unverifiedFingerprint: null,
    enrollmentToken: 'of transit-routers',
  })
  for (const hidden of ['isEdge', 'enrollmentId', 'certPem', 'roleAttributes'])
    expect(shown).not.toHaveProperty(hidden)
  await store.update('transit-routers', id, { cost: 9, disabled: false })
  expect(await store.get('transit-routers', id)).toMatchObject({ name: 't', cost: 9, disabled: false })
})

test('the list of transit routers includes edge routers; the list of edge routers has only its own', async () => {
  await using store = await startRouters()
  const [edge, transit] = [
    await store.create('edge-routers', { name: 'e' }),
    await store.create('transit-routers', { name: 't' }),
  ]
  const ids = async (kind: string) => (await store.list(kind, 'true sort by name')).map(({ id }) => id)
  expect(await ids('transit-routers')).toEqual([edge, transit])
  expect(await ids('edge-routers')).toEqual([edge])
  expect(await store.get('transit-routers', edge)).toMatchObject({
    _links: { self: { href: `./transit-routers/${edge}` } },
  })
  expect(await store.get('transit-routers', edge)).not.toHaveProperty('enrollmentToken')
  expect(await store.count()).toMatchObject({ 'transit-routers': 2, 'edge-routers': 1, controllers: 0 })
})

test('names are unique across both kinds', async () => {
  await using store = await startRouters()
  const refused = { code: 'COULD_NOT_VALIDATE', detail: { field: 'name', value: 'r' } }
  await store.create('edge-routers', { name: 'r' })
  await expect(store.create('transit-routers', { name: 'r' })).rejects.toMatchObject(refused)
  await store.create('transit-routers', { name: 's' })
  const taken = { ...refused, detail: { field: 'name', value: 's' } }
  await expect(store.create('edge-routers', { name: 's' })).rejects.toMatchObject(taken)
})

test('an edge router cannot be updated as a transit router, but can be deleted as one', async () => {
  await using store = await startRouters()
  const id = await store.create('edge-routers', { name: 'e' })
  await expect(store.update('transit-routers', id, { cost: 1 })).rejects.toMatchObject({
    code: 'CAN_NOT_UPDATE_ROUTER',
  })
  await store.remove('transit-routers', id)
  expect(await store.changes()).toEqual(['edge-routers', 'edge-routers gone'])
})

test('a router of either kind is admitted by its current enrollment only', async () => {
  await using store = await startRouters()
  for (const kind of ['edge-routers', 'transit-routers']) {
    const id = await store.create(kind, { name: kind })
    const { rows } = await store.db.query<{ enrollment_id: string }>(
      sql`select enrollment_id from router where id = ${id}`,
    )
    const offer = { routerId: id, certPem: 'PEM', fingerprint: 'aa' }
    await expect(
      store.methods.admitRouter({ ...offer, enrollmentId: 'another' }, context),
    ).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
    await store.methods.admitRouter({ ...offer, enrollmentId: rows[0]?.enrollment_id ?? '' }, context)
    const shown = await store.get(kind, id)
    expect(shown).toMatchObject({ isVerified: true, fingerprint: 'aa' })
    expect(shown).not.toHaveProperty('enrollmentToken')
    expect((await store.changes()).slice(-2)).toEqual([kind, kind])
  }
})

test('clients see of edge routers what they need to connect, once these have enrolled', async () => {
  await using store = await startRouters()
  const id = await store.create('edge-routers', { name: 'e', cost: 3, disabled: true })
  expect(await store.list('edge-routers', '', asClient)).toEqual([])
  await store.db.query(sql`update router set is_verified = true`)
  const replica = { id: 'sessions', incarnation: randomUUID() }
  await takeReplicaId(store.db, replica, 60_000)
  const protocols = { tls: 'tls://edge.example:3022' }
  const row = { ...presenceRow(id), hostname: 'edge.example', supportedProtocols: protocols }
  await writePresence(store.db, replica, [row], [], 0)
  const [shown] = await store.list('edge-routers', '', asClient)
  expect(shown).toEqual({
    _links: expect.objectContaining({ self: { href: `./edge-routers/${id}` } }),
    id,
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
    tags: {},
    appData: {},
    name: 'e',
    cost: 3,
    disabled: true,
    noTraversal: false,
    hostname: 'edge.example',
    isOnline: true,
    supportedProtocols: { tls: 'tls://edge.example:3022' },
    syncStatus: 'SYNC_DONE',
  })
})

test('a route path is that of a circuit of the session, for callers that may see the session', async () => {
  await using store = await startRouters()
  const path = async (id: string, identityId: string, isAdmin: boolean) => {
    const caller = { ...context.caller, identityId, isAdmin }
    return (await store.methods.getRoutePath({ kind: 'sessions', id }, { ...context, caller })).routerIds
  }
  await store.db.query(sql`
    insert into session (id, token, type, api_session_id, service_id, identity_id)
    values ('s', 't', 'Dial', 'a', 'w', 'alice')`)
  expect(await path('s', 'alice', false)).toEqual([])
  await store.db.query(sql`insert into circuit (id, client_id, router_ids) values ('c', 's', '{r1,r2}')`)
  expect(await path('s', 'alice', false)).toEqual(['r1', 'r2'])
  expect(await path('s', 'bob', false)).toEqual([])
  expect(await path('s', 'bob', true)).toEqual(['r1', 'r2'])
  expect(await path('nothing', 'bob', true)).toEqual([])
})
