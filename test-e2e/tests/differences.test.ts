import { afterAll, beforeAll, expect, test } from 'vitest'
import { openClient } from '../client.js'
import { type Fixture, filter, invalid, notFound, password, startFixture } from '../fixture.js'

// The promises of docs/differences.md about reads and writes.

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture({ shared: true })
})
afterAll(() => fixture[Symbol.asyncDispose]())

test.each([
  'auth-policies',
  'config-types',
  'configs',
  'edge-router-policies',
  'edge-routers',
  'identities',
  'service-edge-router-policies',
  'service-policies',
  'services',
])('%s: a taken or empty name is refused, also on replace and patch, and nothing changes', async (kind) => {
  const { get, createSample, refusalOf, sampleOf } = fixture
  const taken = (await get(`/${kind}/${await createSample(kind)}`)).name
  const path = `/${kind}/${await createSample(kind)}`
  const before = await get(path)
  const body = await sampleOf(kind)
  for (const name of [taken, '']) {
    expect(await refusalOf('POST', `/${kind}`, { ...body, name })).toEqual(invalid('name'))
    expect(await refusalOf('PUT', path, { ...body, name })).toEqual(invalid('name'))
    expect(await refusalOf('PATCH', path, { name })).toEqual(invalid('name'))
  }
  expect(await get(path)).toEqual(before)
})

test.each([
  ['nothing', 'identities', {}],
  ['a name that is null', 'identities', { name: null }],
  ['attributes that are null', 'identities', { roleAttributes: null }],
  ['roles that are null', 'service-edge-router-policies', { serviceRoles: null, edgeRouterRoles: null }],
])('a patch of %s is refused', async (_what, kind, body) => {
  const path = `/${kind}/${await fixture.createSample(kind)}`
  expect(await fixture.refusalOf('PATCH', path, body)).toEqual([400, 'COULD_NOT_VALIDATE'])
})

test('a patch of empty tags removes them all', async () => {
  const path = `/services/${await fixture.createSample('services', { tags: { a: 'b' } })}`
  await fixture.admin.request('PATCH', path, { tags: {} })
  expect(await fixture.get(path)).toMatchObject({ tags: {} })
})

test.each([
  ['an empty attribute', 'identities', { roleAttributes: [''] }, 'roleAttributes'],
  ['a role without a prefix', 'service-policies', { identityRoles: ['staff'] }, 'identityRoles'],
  ['an unknown semantic', 'service-policies', { semantic: 'NoneOf' }, 'semantic'],
])('%s is bad input', async (_what, kind, more, field) => {
  const body = { ...(await fixture.sampleOf(kind)), ...more }
  expect(await fixture.refusalOf('POST', `/${kind}`, body)).toEqual(invalid(field))
})

test.each([
  ['a name with a NUL character', { name: 'a\0b' }],
  ['a value that is nested too deep', { tags: { deep: JSON.parse(`${'['.repeat(300)}${']'.repeat(300)}`) } }],
])('%s is refused', async (_what, more) => {
  const body = { ...(await fixture.sampleOf('services')), ...more }
  expect(await fixture.refusalOf('POST', '/services', body)).toEqual([400, 'COULD_NOT_PARSE_BODY'])
})

test.each([
  ['a role filter without a prefix', '/identities?roleFilter=staff', 'COULD_NOT_VALIDATE'],
  ['an unknown semantic', '/identities?roleFilter=%23staff&roleSemantic=NoneOf', 'COULD_NOT_VALIDATE'],
  ['a sort by a tag', '/identities?sort=tags.location', 'INVALID_SORT_IDENTIFIER'],
  ['a sort by a tag in the filter', `/identities?${filter('true sort by tags.location')}`, 'INVALID_FILTER'],
  ['a text without its end', `/identities?${filter('name = "x')}`, 'INVALID_FILTER'],
  ['an unknown symbol of attributes', `/service-role-attributes?${filter('name = "x"')}`, 'INVALID_FILTER'],
  ['a filter by a password', `/authenticators?${filter('updbPassword != null')}`, 'INVALID_FILTER'],
  ['a filter by a salt', `/authenticators?${filter('updbSalt != null')}`, 'INVALID_FILTER'],
])('a list with %s is refused', async (_what, path, code) => {
  expect((await fixture.refusalOf('GET', path)).slice(0, 2)).toEqual([400, code])
})

test('unused attributes select no rows; tags can be compared without case', async () => {
  const id = await fixture.createSample('identities', { tags: { location: 'Berlin' } })
  const roles = '/identities?roleFilter=%23nobody&roleFilter=%23noone&roleSemantic=AnyOf'
  expect(await fixture.list(roles)).toEqual([])
  const matches = await fixture.list(`/identities?${filter('tags.location icontains "BERL"')}`)
  expect(matches).toMatchObject([{ id }])
})

const later = { expiresAt: '2100-01-01T00:00:00Z' }

test.each([
  ['/identities/nothing/disable', { durationMinutes: 1 }],
  ['/identities/nothing/enable', undefined],
  ['/edge-routers/nothing/re-enroll', undefined],
  ['/authenticators/nothing/re-enroll', later],
  ['/enrollments/nothing/refresh', later],
])('%s is not found', async (path, body) => {
  expect(await fixture.refusalOf('POST', path, body)).toEqual(notFound)
})

test('a patch of an auth policy with a signer that does not exist is not found', async () => {
  const path = `/auth-policies/${await fixture.createSample('auth-policies')}`
  const body = { primary: { extJwt: { allowedSigners: ['nothing'] } } }
  expect((await fixture.refusalOf('PATCH', path, body)).slice(0, 2)).toEqual(notFound)
})

test('the encryption of a service is set by its create only', async () => {
  const { admin, get, createSample, newName } = fixture
  const path = `/services/${await createSample('services', { encryptionRequired: false })}`
  await admin.request('PUT', path, { name: newName(), encryptionRequired: true })
  await admin.call('PATCH', path, { encryptionRequired: true })
  expect(await get(path)).toMatchObject({ encryptionRequired: false })
  const other = `/services/${await createSample('services', { encryptionRequired: true })}`
  await admin.request('PUT', other, { name: newName() })
  expect(await get(other)).toMatchObject({ encryptionRequired: true })
})

const inUse = [409, 'CAN_NOT_DELETE_REFERENCED_ENTITY']

test('a config type lists its configs, and cannot be deleted while it has some', async () => {
  const { admin, list, createSample, refusalOf } = fixture
  const typeId = await createSample('config-types')
  const configId = await createSample('configs', { configTypeId: typeId, data: { a: 1 } })
  expect(await list(`/config-types/${typeId}/configs`)).toMatchObject([{ id: configId }])
  expect(await refusalOf('DELETE', `/config-types/${typeId}`)).toEqual(inUse)
  await admin.request('DELETE', `/configs/${configId}`)
  await admin.request('DELETE', `/config-types/${typeId}`)
})

test('a config cannot be deleted while an identity has it for a service', async () => {
  const { admin, createSample, refusalOf } = fixture
  const [identityId, configId] = [await createSample('identities'), await createSample('configs')]
  const path = `/identities/${identityId}/service-configs`
  const own = [{ serviceId: await createSample('services'), configId }]
  await admin.request('POST', path, own)
  expect(await refusalOf('DELETE', `/configs/${configId}`)).toEqual(inUse)
  await admin.request('DELETE', path, own)
  await admin.request('DELETE', `/configs/${configId}`)
})

test.each(['configs', 'config-types'])(
  'a patch of %s requires only the members that it changes',
  async (kind) => {
    const { admin, get, createSample, newName } = fixture
    const path = `/${kind}/${await createSample(kind)}`
    const [before, name] = [await get(path), newName()]
    await admin.request('PATCH', path, { name })
    const after = await get(path)
    expect(after).toEqual({ ...before, name, updatedAt: after.updatedAt })
  },
)

test.each([
  ['service-policies', 'identities', 'identityRoles'],
  ['edge-router-policies', 'identities', 'identityRoles'],
  ['service-edge-router-policies', 'services', 'serviceRoles'],
])('a change of only the semantic of %s changes their links', async (kind, link, roles) => {
  const { admin, list, createSample, newName } = fixture
  const attribute = newName()
  const id = await createSample(link, { roleAttributes: [attribute] })
  const body = { semantic: 'AllOf', [roles]: [`#${attribute}`, '#nobody-has-this'] }
  const path = `/${kind}/${await createSample(kind, body)}`
  expect(await list(`${path}/${link}`)).toEqual([])
  await admin.request('PATCH', path, { semantic: 'AnyOf' })
  expect(await list(`${path}/${link}`)).toMatchObject([{ id }])
})

test('admins can also write services through the client API', async () => {
  const { get, logIn, createSample, newName, refusalOf, server } = fixture
  using client = openClient(server, '/edge/client/v1')
  client.use(((await logIn('admin', password)).body.data as { token: string }).token)
  const path = `/services/${await createSample('services')}`
  for (const method of ['PATCH', 'PUT']) {
    const name = newName()
    await client.request(method, path, { name })
    expect(await get(path)).toMatchObject({ name })
  }
  await client.request('DELETE', path)
  expect(await refusalOf('GET', path)).toEqual(notFound)
})
