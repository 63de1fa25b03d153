import { identity as identityKind, type ValuesOf } from '@overlay/model'
import { createdValues, noQuery } from '@overlay/store/kind-store'
import { compactCounts } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { identityInserter } from '../src/store/identity-rows.js'
import {
  as,
  bytes,
  changesAfter,
  login,
  parsed,
  type Replica,
  system,
  type TestIdentity,
  testIdentity,
} from './identity.js'

let identity: TestIdentity
let one: Replica
let two: Replica
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
  two = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

const kind = 'identities'
const create = (body: object, replica = one) =>
  replica.entities.create({ kind, json: bytes({ type: 'Default', isAdmin: false, ...body }) }, system())
const get = async (id: string): Promise<Record<string, unknown>> =>
  parsed((await one.entities.get({ ref: { kind, id }, perspective: undefined }, system())).json)
const update = (id: string, body: object) =>
  one.entities.update({ ref: { kind, id }, json: bytes(body), mask: Object.keys(body) }, system())

test('a created identity shows every member of the documents', async () => {
  const { id } = await create({ name: 'small' })
  expect(id).toMatch(/^[0-9A-Za-z.-]{9,10}$/)
  expect(await get(id)).toEqual({
    _links: expect.objectContaining({
      self: { href: `./identities/${id}` },
      'auth-policies': { href: './auth-policies/default' },
      'posture-data': { href: `./identities/${id}/posture-data` },
    }),
    id,
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    updatedAt: expect.any(String),
    tags: {},
    name: 'small',
    type: expect.objectContaining({ entity: 'identity-types', id: 'Default', name: 'Default' }),
    typeId: 'Default',
    isAdmin: false,
    isDefaultAdmin: false,
    isMfaEnabled: false,
    roleAttributes: null,
    externalId: null,
    authPolicyId: 'default',
    authPolicy: expect.objectContaining({ entity: 'auth-policies', id: 'default', name: 'Default' }),
    disabled: false,
    hasApiSession: false,
    hasEdgeRouterConnection: false,
    envInfo: {},
    sdkInfo: {},
    authenticators: {},
    enrollment: {},
    defaultHostingCost: 0,
    defaultHostingPrecedence: 'default',
    serviceHostingCosts: {},
    serviceHostingPrecedences: {},
    appData: {},
  })
})

test('all that is sent comes back, except the type', async () => {
  identity.world.services.add('s1')
  const sent = {
    name: 'large',
    isAdmin: true,
    roleAttributes: ['b', 'a', 'b'],
    externalId: 'ext-1',
    appData: { k: 'v' },
    tags: { color: 'red', flag: true, nothing: null },
    defaultHostingCost: 7,
    defaultHostingPrecedence: 'required',
    serviceHostingCosts: { s1: 3 },
    serviceHostingPrecedences: { s1: 'sometimes' },
  }
  const { id } = await create({ ...sent, type: 'Router' })
  expect(await get(id)).toMatchObject({
    ...sent,
    roleAttributes: ['a', 'b'],
    serviceHostingPrecedences: { s1: 'default' },
    typeId: 'Default',
  })
})

test.each([
  ['a name that is taken', { name: 'twin' }, 'COULD_NOT_VALIDATE', 'name'],
  [
    'an external id that is taken',
    { name: 'x1', externalId: 'twin-ext' },
    'COULD_NOT_VALIDATE',
    'externalId',
  ],
  ['an auth policy that does not exist', { name: 'x2', authPolicyId: 'none' }, 'NOT_FOUND', undefined],
  [
    'a hosting service that does not exist',
    { name: 'x3', serviceHostingCosts: { no: 1 } },
    'NOT_FOUND',
    undefined,
  ],
  [
    'an attribute with a sign in front',
    { name: 'x4', roleAttributes: ['#a'] },
    'COULD_NOT_VALIDATE',
    'roleAttributes',
  ],
])('%s is refused', async (_what, body, code, field) => {
  await create({ name: 'twin', externalId: 'twin-ext' }).catch(() => undefined)
  await expect(create(body)).rejects.toMatchObject({ code, ...(field && { detail: { field } }) })
})

test('concurrent creates have changes of their own, densely and in order', async () => {
  const before = await one.changeLog.head()
  const outcomes = await Promise.allSettled([
    ...Array.from({ length: 40 }, (_, i) =>
      create({ name: `many ${i % 30}`, tags: { i } }, i % 2 ? one : two),
    ),
  ])
  const written = outcomes.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  expect(written).toHaveLength(30)
  const { changes, upto } = await one.changeLog.pull(before)
  expect(changes.map(({ number }) => number)).toEqual(
    Array.from({ length: 30 }, (_, i) => before.number + 1 + i),
  )
  expect(upto?.number).toBe(before.number + 30)
  for (const { id, position } of written) {
    const change = changes.find(({ number }) => number === position?.number)
    expect(change?.id).toBe(id)
  }
})

test('a list counts all rows, whatever is created, refused, deleted and added up meanwhile', async () => {
  const inAll = async (replica: Replica) => {
    const query = { ...noQuery, limit: '1' }
    const list = { kind, query, within: undefined, perspective: undefined }
    return (await replica.entities.list(list, system())).total
  }
  const really = async () => Number((await one.db.query(sql`select count(*) as n from identity`)).rows[0]?.n)
  expect(await inAll(two)).toBe(await really())
  const before = await inAll(one)
  const outcomes = await Promise.allSettled(
    Array.from({ length: 60 }, (_, i) => create({ name: `counted ${i % 40}` }, i % 2 ? one : two)),
  )
  expect(await inAll(one)).toBe(before + 40)
  const ids = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value.id] : []))
  await Promise.all([
    ...ids.slice(0, 10).map((id) => one.entities.delete({ kind, id }, system())),
    ...[one, two, one].map(({ db }) => compactCounts(db, 1)),
    create({ name: 'counted last' }),
  ])
  expect([await inAll(one), await inAll(two)]).toEqual([before + 31, before + 31])
  await compactCounts(two.db, 1)
  const { rows } = await one.db.query(sql`select from row_count where table_name = 'identity'`)
  expect([rows.length, await inAll(one), await really()]).toEqual([1, before + 31, before + 31])
})

test('one id that is created twice at once is created once, and the change log has no gap', async () => {
  const before = await one.changeLog.head()
  const insert = identityInserter(one.changeLog)
  const { values } = createdValues(identityKind, { name: 'doubled', type: 'Default', isAdmin: false })
  const row = {
    id: 'doubled',
    values: { ...(values as ValuesOf<typeof identityKind>), authPolicyId: 'default' },
    tags: {},
    payload: {},
    context: system(),
  }
  const positions = await Promise.all([insert(row), insert(row)])
  await create({ name: 'after the doubled' })
  const changes = await changesAfter(one.changeLog, before)
  expect(positions[0]).toEqual(positions[1])
  expect(changes.map(({ number }) => number - before.number)).toEqual([1, 2])
})

test('the change of a create has the members of an update, and marks it as new', async () => {
  const before = await one.changeLog.head()
  const { id } = await create({ name: 'changed', roleAttributes: ['x'], tags: { a: 1 } })
  await update(id, { tags: { a: 2 } })
  const changes = await changesAfter(one.changeLog, before)
  const [created, second] = changes.map(({ json }) => parsed(json))
  const { isNew, ...first } = created ?? {}
  expect(isNew).toBe(true)
  expect(Object.keys(first).sort()).toEqual(Object.keys(second ?? {}).sort())
  expect(first).toMatchObject({ ...second, updatedAt: expect.any(String), tags: { a: 1 } })
})

test('a requested enrollment is in the change with its token, which no audit row contains', async () => {
  const before = await one.changeLog.head()
  const { id } = await create({ name: 'wanting', enrollment: { ott: true, updb: 'ignored' } })
  const changes = await changesAfter(one.changeLog, before)
  const payload = parsed<{ enrollmentWanted: { token: string } }>(changes[0]?.json ?? Buffer.alloc(0))
  expect(payload.enrollmentWanted).toMatchObject({ method: 'ott', identityId: id })
  expect(identity.world.wishes.at(-1)).toEqual({ ...payload.enrollmentWanted, identityId: '' })
  const { rows } = await one.db.query<{ text: string }>(
    sql`select coalesce(before::text, '') || after::text as text from audit where entity_id = ${id}`,
  )
  expect(rows).toHaveLength(1)
  expect(rows[0]?.text).not.toContain(payload.enrollmentWanted.token)
})

test('a load has the enrollment that an identity was created with, without its token', async () => {
  const enrolled = await create({ name: 'promised', enrollment: { updb: 'promised-user' } })
  const plain = await create({ name: 'unpromised' })
  const promised = new Map<string, unknown>()
  for await (const { changes } of one.changes.load({ kinds: ['identities'] }, system()))
    for (const { id, json } of changes)
      promised.set(id, parsed<{ enrollmentPromised?: unknown }>(json).enrollmentPromised)
  const id = identity.world.wishes.at(-1)?.id
  expect(promised.get(enrolled.id)).toEqual({ id, method: 'updb', username: 'promised-user' })
  expect([promised.has(plain.id), promised.get(plain.id)]).toEqual([true, undefined])
})

test('members that a patch does not name stay', async () => {
  const { id } = await create({ name: 'patched', roleAttributes: ['a'], externalId: 'patched-ext' })
  await update(id, { name: 'patched too' })
  expect(await get(id)).toMatchObject({
    name: 'patched too',
    roleAttributes: ['a'],
    externalId: 'patched-ext',
  })
  await update(id, { externalId: '' })
  expect(await get(id)).toMatchObject({ externalId: null })
})

test('a replace without auth policy falls back to the default one', async () => {
  const { id } = await create({ name: 'replaced' })
  const body = { name: 'replaced', type: 'User', isAdmin: false }
  await one.entities.update(
    { ref: { kind, id }, json: bytes(body), mask: [...Object.keys(body), 'authPolicyId', 'externalId'] },
    system(),
  )
  expect(await get(id)).toMatchObject({ authPolicyId: 'default', typeId: 'Default' })
})

test('an identity does not become a router: a replace is refused, a patch changes nothing', async () => {
  const { id } = await create({ name: 'no router' })
  await update(id, { type: 'Router' })
  expect(await get(id)).toMatchObject({ typeId: 'Default' })
  const mask = Object.entries(identityKind.fields).flatMap(([name, { write }]) =>
    write[1] === '-' ? [] : [name],
  )
  const json = bytes({ name: 'no router', type: 'Router', isAdmin: false })
  await expect(one.entities.update({ ref: { kind, id }, json, mask }, system())).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'typeId' },
  })
})

test('a name that is taken is refused on update too', async () => {
  await create({ name: 'taken' })
  const { id } = await create({ name: 'free' })
  await expect(update(id, { name: 'taken' })).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'name' },
  })
})

test('the default admin cannot be deleted or disabled', async () => {
  const page = await one.entities.list(
    { kind, query: query('isDefaultAdmin = true'), within: undefined, perspective: undefined },
    system(),
  )
  const [admin] = parsed<{ id: string }[]>(page.rows)
  const id = admin?.id ?? ''
  await expect(one.entities.delete({ kind, id }, system())).rejects.toMatchObject({
    code: 'ENTITY_CAN_NOT_BE_DELETED',
  })
  await expect(one.identity.disableIdentity({ id, durationMinutes: 1 }, system())).rejects.toMatchObject({
    code: 'ENTITY_CAN_NOT_BE_UPDATED',
  })
})

test('authenticators and sessions of a deleted identity are deleted, each with a change', async () => {
  const { id } = await create({ name: 'leaving' })
  const proof = { method: 'updb', identityId: id, username: 'leaving', password: 'right-one' }
  const { id: authenticatorId } = await one.entities.create(
    { kind: 'authenticators', json: bytes(proof) },
    system(),
  )
  const credentials = login({ username: 'leaving', password: 'right-one' })
  const sessions = [
    await one.identity.authenticate(credentials, system()),
    await two.identity.authenticate(credentials, system()),
  ]
  expect(await get(id)).toMatchObject({
    hasApiSession: true,
    authenticators: { updb: { id: authenticatorId, username: 'leaving' } },
  })
  const before = await one.changeLog.head()
  await one.entities.delete({ kind, id }, system())
  const changes = await changesAfter(one.changeLog, before)
  expect(changes.map((change) => [change.kind, change.id, change.json.length]).sort()).toEqual(
    [
      ['identities', id, 0],
      ['authenticators', authenticatorId, 0],
      ...sessions.map((session) => ['api-sessions', session.id, 0]),
    ].sort(),
  )
  for (const { token } of sessions)
    await expect(two.identity.getApiSession({ bearerTokens: [], token }, system())).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
    })
})

test('an identity that is deleted while it logs in leaves no session behind', async () => {
  for (let round = 0; round < 5; round++) {
    const { id } = await create({ name: `racing ${round}` })
    const username = `racing-${round}`
    await one.entities.create(
      {
        kind: 'authenticators',
        json: bytes({ method: 'updb', identityId: id, username, password: 'right-one' }),
      },
      system(),
    )
    await Promise.allSettled([
      one.identity.authenticate(login({ username, password: 'right-one' }), system()),
      two.identity.authenticate(login({ username, password: 'right-one' }), system()),
      one.entities.delete({ kind, id }, system()),
    ])
    const { rows } = await one.db.query(sql`select from api_session where identity_id = ${id}`)
    expect(rows).toHaveLength(0)
  }
})

test('a caller without admin rights sees only itself', async () => {
  const { id } = await create({ name: 'modest' })
  const { id: other } = await create({ name: 'hidden' })
  const context = as({ identityId: id })
  const own = await one.entities.get({ ref: { kind, id }, perspective: undefined }, context)
  expect(parsed(own.json)).toMatchObject({ name: 'modest' })
  await expect(
    one.entities.get({ ref: { kind, id: other }, perspective: undefined }, context),
  ).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test.each([
  ['get', () => get('nothing')],
  ['update', () => update('nothing', { name: 'x' })],
  ['delete', () => one.entities.delete({ kind, id: 'nothing' }, system())],
  ['disable', () => one.identity.disableIdentity({ id: 'nothing', durationMinutes: 1 }, system())],
  ['enable', () => one.identity.enableIdentity({ kind, id: 'nothing' }, system())],
])('%s of an unknown identity is a 404', async (_what, call) => {
  await expect(call()).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

const query = (filter: string) => ({ ...noQuery, filter })
