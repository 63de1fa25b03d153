import { withLoadedRows } from '@overlay/store/change-log'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { identityConsumer } from '../src/consumers/identity.js'
import { routerEffects } from '../src/consumers/sessions.js'
import { emptyPosture } from '../src/domain/posture/posture-data.js'
import { admin, as, named, networkOfFile } from './network.js'

const { network, policy } = await networkOfFile()

interface BuiltIn {
  readonly properties: Readonly<
    Record<string, { readonly uniqueItems?: true; readonly allOf?: readonly object[] }>
  >
  readonly definitions: { readonly terminator?: BuiltIn }
}

const service = (row: object = {}) => policy.create('services', named({ encryptionRequired: true, ...row }))
const grant = (row: object) =>
  policy.create(
    'service-policies',
    named({ type: 'Dial', semantic: 'AnyOf', identityRoles: ['#all'], ...row }),
  )
const config = (configTypeId: string, data: object) => policy.create('configs', named({ configTypeId, data }))
const host = { protocol: 'tcp', address: 'localhost', port: 8080 }
const intercept = { protocols: ['tcp'], addresses: ['*.example.org'], portRanges: [{ low: 80, high: 81 }] }

test.each([
  ['g7cIWbcGg', { ...intercept, addresses: [] }, 'addresses'],
  ['g7cIWbcGg', { ...intercept, protocols: ['tcp', 'tcp'] }, 'protocols'],
  ['g7cIWbcGg', { ...intercept, portRanges: [{ low: 80 }] }, 'portRanges.0'],
  ['NH5p4FpGR', { ...host, allowedSourceAddresses: [] }, 'allowedSourceAddresses'],
  ['NH5p4FpGR', { ...host, allowedPortRanges: [{ low: 80 }] }, 'allowedPortRanges.0'],
  ['host.v2', { terminators: [{ ...host, allowedAddresses: [] }] }, 'terminators.0.allowedAddresses'],
  ['host.v2', { terminators: [{ ...host, allowedProtocols: ['no'] }] }, 'terminators.0.allowedProtocols.0'],
])('a set of %s has at least one, each once and of its sort: %j', async (type, data, field) => {
  await expect(config(type, data)).rejects.toMatchObject({ code: 'COULD_NOT_VALIDATE', detail: { field } })
})

test('a host takes any number of connections, and proxies with settings of their own', async () => {
  const listenOptions = { maxConnections: 100_000 }
  const proxy = { type: 'http', address: 'proxy:3128', user: 'u' }
  for (const [type, data] of [
    ['NH5p4FpGR', { ...host, listenOptions, proxy }],
    ['host.v2', { terminators: [{ ...host, listenOptions, proxy }] }],
  ] as const)
    expect(await config(type, data)).toEqual(expect.any(String))
})

test('forms can draw every choice of the built-in config types', async () => {
  const chosen = JSON.stringify(await policy.list('config-types', {})).matchAll(/"enum": ?(\[.*?\])/g)
  for (const [, choice = ''] of chosen)
    for (const value of JSON.parse(choice) as unknown[]) expect(value).toEqual(expect.any(String))
})

test('forms drawn from the built-in config types leave out empty sets', async () => {
  for (const type of ['g7cIWbcGg', 'NH5p4FpGR', 'host.v2']) {
    const { schema } = (await policy.get('config-types', type)) as { schema: BuiltIn }
    const { properties } = schema.definitions.terminator ?? schema
    const sets = Object.values(properties).filter(({ allOf }) => allOf)
    expect(sets.map(({ allOf }) => Object.keys(allOf?.[1] ?? {}))).toEqual(sets.map(() => ['items']))
    expect(sets).toHaveLength(type === 'g7cIWbcGg' ? 3 : 4)
    expect(Object.values(properties).filter(({ uniqueItems }) => uniqueItems)).toEqual([])
  }
})

test('a service gets the default strategy; the list shows what an admin may use: nothing, without a policy', async () => {
  const id = await service({ tags: { a: 'b' } })
  expect(await policy.get('services', id)).toMatchObject({
    id,
    terminatorStrategy: 'smartrouting',
    encryptionRequired: true,
    configs: null,
    roleAttributes: null,
    permissions: ['Invalid'],
    config: null,
    postureQueries: [
      {
        policyId: 'dummy invalid policy: no posture checks defined',
        policyType: 'Invalid',
        isPassing: true,
        postureQueries: [],
      },
    ],
  })
  const [listed] = await policy.list('services', { filter: `id = "${id}"` })
  expect(listed).toMatchObject({ permissions: ['Invalid'], config: {} })
})

test.each([
  ['an unknown strategy', { terminatorStrategy: 'no' }, 'terminatorStrategy with name no not found'],
  ['an unknown config', { configs: ['no'] }, 'configs with id no not found'],
])('%s is not found', async (_what, row, detail) => {
  await expect(service(row)).rejects.toMatchObject({ code: 'NOT_FOUND', detail })
})

test('a service has one config of a type', async () => {
  const configs = [await config('g7cIWbcGg', intercept), await config('g7cIWbcGg', intercept)]
  await expect(service({ configs })).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: {
      field: 'configs',
      reason: expect.stringMatching(
        /^duplicate configs named n\d+ and n\d+ found for config type intercept.v1. Only one config of a given typed is allowed per service $/,
      ),
    },
  })
})
test('the same config twice counts once', async () => {
  const id = await config('g7cIWbcGg', intercept)
  const [row] = await policy.list('services', { filter: `id = "${await service({ configs: [id, id] })}"` })
  expect(row).toMatchObject({ configs: [id] })
})

test('a caller sees the services that a policy grants it, and no others', async () => {
  const alice = as({ identityId: 'alice' })
  await network.identity.put('alice', { isAdmin: false, roleAttributes: ['staff'] })
  const [wiki, mail, hidden] = [await service({ roleAttributes: ['web'] }), await service(), await service()]
  await grant({ identityRoles: ['#staff'], serviceRoles: ['#web'] })
  await grant({ type: 'Bind', identityRoles: ['@alice'], serviceRoles: [`@${mail}`, '#web'] })
  const position = await policy.update('services', hidden, { tags: { x: 1 } })
  const caughtUp = { ...alice, positions: { policy: position ?? { timeline: '', number: 0 } } }
  const listed = await policy.list('services', { context: caughtUp })
  expect(new Map(listed.map(({ id, permissions }) => [id, permissions]))).toEqual(
    new Map([
      [mail, ['Bind']],
      [wiki, ['Bind', 'Dial']],
    ]),
  )
  expect(await policy.list('services', { asIdentity: 'name-alice' })).toHaveLength(2)
  await expect(policy.list('services', { asIdentity: 'nobody' })).rejects.toMatchObject({
    detail: 'identity with id or name nobody not found',
  })
  await expect(policy.get('services', hidden, caughtUp)).rejects.toMatchObject({
    code: 'NOT_FOUND',
    detail: `service with id ${hidden} not found`,
  })
})
test('configs of the requested types are shown by the names of their types', async () => {
  const host = { protocol: 'tcp', address: 'localhost', port: 22 }
  const configs = [await config('g7cIWbcGg', intercept), await config('NH5p4FpGR', host)]
  const filter = `id = "${await service({ configs })}"`
  const shown = async (configTypes?: string[]) =>
    (await policy.list('services', { filter, ...(configTypes && { configTypes }) }))[0]?.config
  expect(await shown()).toEqual({})
  expect(await shown(['nothing'])).toEqual({})
  expect(await shown(['intercept.v1'])).toEqual({ 'intercept.v1': intercept })
  expect(await shown(['NH5p4FpGR', 'nothing'])).toEqual({ 'host.v1': host })
  expect(await shown(['nothing', 'all'])).toEqual({ 'intercept.v1': intercept, 'host.v1': host })
})

test('a detail shows the types that were named at login', async () => {
  const id = await service({ configs: [await config('g7cIWbcGg', intercept)] })
  const all = as({ isAdmin: true, configTypes: ['all'] })
  expect((await policy.get('services', id, all)).config).toEqual({ 'intercept.v1': intercept })
})

test('rows of a linked list show nothing of the caller', async () => {
  const id = await service()
  const within = { ids: [id], roles: [], symbol: '', value: '' }
  expect(await policy.list('services', { within })).toMatchObject([
    { id, permissions: null, config: null, postureQueries: [] },
  ])
})

test('a config that does not fit its type is refused with the first reason', async () => {
  await expect(config('g7cIWbcGg', { protocols: ['tcp'], portRanges: [] })).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: '(root)', reason: '(root) is invalid: (root): addresses is required' },
  })
  await expect(config('nothing', {})).rejects.toMatchObject({
    detail: { field: 'type', reason: 'invalid config type' },
  })
})

test('a patch of a config without data keeps it; its type never changes', async () => {
  const id = await config('g7cIWbcGg', intercept)
  await policy.update('configs', id, { name: 'renamed', configTypeId: 'NH5p4FpGR' })
  expect(await policy.get('configs', id)).toMatchObject({
    name: 'renamed',
    configTypeId: 'g7cIWbcGg',
    configType: { id: 'g7cIWbcGg', name: 'intercept.v1', entity: 'config-types' },
    data: intercept,
  })
})

test('a config type is called anything but all, and its schema describes an object', async () => {
  const create = (row: object) => policy.create('config-types', named(row))
  await expect(create({ name: 'all' })).rejects.toMatchObject({ detail: { field: 'name' } })
  await expect(create({ schema: { type: 'nonsense' } })).rejects.toMatchObject({
    detail: { field: 'schema', reason: expect.stringMatching(/^invalid schema ./) },
  })
  await expect(create({ schema: { type: 'array' } })).rejects.toMatchObject({
    detail: { field: 'schema', reason: 'invalid config type schema, root type must be object' },
  })
  for (const members of [{}, { schema: {} }])
    expect(await policy.get('config-types', await create(members))).toMatchObject({ schema: null })
})

test('a config type with configs cannot be deleted; a deleted config is removed from its services', async () => {
  const type = await policy.create('config-types', named({}))
  const id = await config(type, { any: 'thing' })
  const user = await service({ configs: [id] })
  await expect(policy.remove('config-types', type)).rejects.toMatchObject({
    code: 'CAN_NOT_DELETE_REFERENCED_ENTITY',
    detail: `cannot delete config type ${type}, as configs of that type exist`,
  })
  await policy.remove('configs', id)
  expect(await policy.get('services', user)).toMatchObject({ configs: null })
  await policy.remove('config-types', type)
})

test('a policy is for dial or bind', async () => {
  await expect(grant({ type: 'Invalid' })).rejects.toMatchObject({
    detail: { field: 'policyType', reason: "invalid policy type. valid types are 'Dial' and 'Bind'" },
  })
})

test('roles name existing entities, and lose deleted ones', async () => {
  const [id, other] = [await service(), await service()]
  await expect(grant({ serviceRoles: ['@nope', `@${id}`, '@nope2'] })).rejects.toMatchObject({
    detail: {
      field: 'serviceRoles',
      reason: 'no services found with the given ids',
      value: ['nope', 'nope2'],
    },
  })
  const policyId = await grant({ serviceRoles: [`@${id}`, `@${other}`, '#web'] })
  const before = await policy.get('service-policies', policyId)
  await policy.remove('services', id)
  const after = await policy.get('service-policies', policyId)
  expect(after.serviceRoles).toEqual(['#web', `@${other}`])
  expect(after.updatedAt).toBe(before.updatedAt)
})

test('a load removes what belongs to identities and routers that were deleted while they were not followed', async () => {
  const deleted = `deleted${Math.random()}`
  await network.identity.put('stays', { isAdmin: false })
  await network.identity.put(deleted, { isAdmin: false })
  await network.sessions.put(deleted, {})
  const id = await policy.create(
    'edge-router-policies',
    named({ semantic: 'AllOf', identityRoles: ['@stays', `@${deleted}`], edgeRouterRoles: [`@${deleted}`] }),
  )
  const { db } = policy.changeLog
  await db.query(
    sql`insert into posture_data (identity_id, data) values (${deleted}, ${JSON.stringify(emptyPosture)})`,
  )
  const names = async (_: string, ids: readonly string[]) =>
    new Map(ids.filter((one) => one !== deleted).map((one) => [one, one]))
  for (const effects of [identityConsumer(network.identity.source, names).effects, routerEffects(names)])
    await policy.changeLog.write(admin, async (tx) => ({
      result: undefined,
      changes: await withLoadedRows(tx, [], (rows) => effects.reload(tx, rows, { timeline: '', number: 0 })),
    }))
  expect(await policy.get('edge-router-policies', id)).toMatchObject({
    identityRoles: ['@stays'],
    edgeRouterRoles: null,
  })
  const { rows } = await db.query(sql`select from posture_data where identity_id = ${deleted}`)
  expect(rows).toEqual([])
})

test('a deleted identity or router is removed from policies', async () => {
  await network.identity.put('bob', { isAdmin: false })
  await network.sessions.put('r9', {})
  const id = await policy.create(
    'edge-router-policies',
    named({ semantic: 'AllOf', identityRoles: ['@bob', '#x'], edgeRouterRoles: ['@r9'] }),
  )
  expect(await policy.get('edge-router-policies', id)).toMatchObject({
    isSystem: false,
    identityRolesDisplay: [
      { role: '#x', name: '#x' },
      { role: '@bob', name: '@name-bob' },
    ],
  })
  await network.identity.remove('bob')
  await network.sessions.remove('r9')
  await expect
    .poll(() => policy.get('edge-router-policies', id, admin))
    .toMatchObject({ identityRoles: ['#x'], edgeRouterRoles: null })
})
