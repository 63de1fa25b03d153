import { Fault } from '@overlay/rpc'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADMIN, ALICE } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())

const F = '/fabric/v1'
const callsOf = (method: string) =>
  gateway.fakes.calls.filter((call) => call.method === method).map(({ request }) => request)
const lastOf = (method: string) => callsOf(method).at(-1)
const send = (method: string, path: string, body?: unknown, token = ADMIN) =>
  gateway.request(F + path, { method, token, ...(body !== undefined && { body }) })
const bodyOf = (request: unknown) => JSON.parse((request as { json: Buffer }).json.toString())

const listed = (row: object) => {
  gateway.fakes.rows.set('sessions transit-routers', [JSON.stringify([row])])
  gateway.fakes.rows.set('sessions terminators', [JSON.stringify([row])])
}

test('the list of routers has routers of both sorts, for admins', async () => {
  listed({ id: 'r1', name: 'edge', cost: 3, noTraversal: true, isOnline: true, enrollmentToken: 'secret' })
  const { json } = await send('GET', '//routers?limit=1000')
  expect(json.data).toEqual([
    {
      _links: { self: { href: './routers/r1' }, terminators: { href: './routers/r1/terminators' } },
      id: 'r1',
      name: 'edge',
      connected: true,
      cost: 3,
      listenerAddresses: null,
      noTraversal: true,
    },
  ])
  expect(lastOf('sessions.entities.list')).toMatchObject({ perspective: { asFabric: true } })
  expect((await send('GET', '/routers', undefined, ALICE)).status).toBe(401)
})

test('members of terminators have the names of the fabric API, in both directions', async () => {
  const service = { id: 's1', name: 'web', _links: {}, entity: 'services' }
  listed({ id: 't1', identity: 'one', hostId: 'i1', service, serviceId: 's1', router: { id: 'r1' } })
  const { json } = await send('GET', '/terminators')
  const ref = {
    _links: { self: { href: './services/s1' }, terminators: { href: './services/s1/terminators' } },
  }
  expect(json.data).toMatchObject([
    { instanceId: 'one', hostId: 'i1', service: { ...ref, entity: 'services', id: 's1', name: 'web' } },
  ])
  expect((json.data as object[])[0]).not.toHaveProperty('identity')

  const body = { service: 's1', router: 'r1', binding: 'transport', address: 'tcp:a:1' }
  await send('POST', '/terminators', { ...body, instanceId: 'one', instanceSecret: 'AQ==', hostId: 'i1' })
  const stored = { ...body, identity: 'one', identitySecret: 'AQ==', hostId: 'i1' }
  expect(bodyOf(lastOf('sessions.entities.create'))).toEqual(stored)
})

test('a router is created with the id and the certificate that the administrator names', async () => {
  const body = { id: 'r9', name: 'nine', fingerprint: 'ab', cost: 1, noTraversal: false }
  const { status, json } = await send('POST', '/routers', body)
  expect([status, json.data]).toMatchObject([201, { _links: { self: { href: './routers/new-id' } } }])
  const { id, ...members } = body
  expect(lastOf('sessions.entities.create')).toMatchObject({ kind: 'transit-routers', id })
  expect(bodyOf(lastOf('sessions.entities.create'))).toEqual(members)
})

test('an update changes edge routers and transit routers alike', async () => {
  await send('PATCH', '/routers/r1', { cost: 7 })
  expect(lastOf('sessions.entities.update')).toMatchObject({
    ref: { kind: 'edge-routers', id: 'r1' },
    mask: ['cost'],
  })
  gateway.fakes.instead.set('sessions.entities.update', async ({ ref }: { ref: { kind: string } }) => {
    if (ref.kind === 'edge-routers') throw new Fault('NOT_FOUND')
    return { id: 'r2', position: undefined }
  })
  expect((await send('PATCH', '/routers/r2', { cost: 7 })).status).toBe(200)
  expect(lastOf('sessions.entities.update')).toMatchObject({ ref: { kind: 'transit-routers', id: 'r2' } })
  gateway.fakes.instead.delete('sessions.entities.update')
})

test('a replace of a service leaves the members that the fabric API does not have', async () => {
  await send('PUT', '/services/s1', { name: 'web' })
  expect(lastOf('policy.entities.update')).toMatchObject({
    ref: { kind: 'services', id: 's1' },
    mask: ['name', 'terminatorStrategy', 'tags'],
  })
})

test.each(['services', 'routers'])('the terminators of one of the %s are listed', async (kind) => {
  await send('GET', `/${kind}/x1/terminators`)
  const symbol = kind.slice(0, -1)
  expect(lastOf('sessions.entities.list')).toMatchObject({
    kind: 'terminators',
    within: { symbol, value: 'x1' },
  })
})

test('a delete accepts the body that the command line sends', async () => {
  const { status } = await send('DELETE', '/terminators/t1', { immediate: false })
  expect(status).toBe(200)
  expect(lastOf('sessions.entities.delete')).toEqual({ kind: 'terminators', id: 't1' })
})

test('operations of a Raft cluster are refused as by a controller without one', async () => {
  const { status, json } = await send('GET', '/raft/list-members')
  expect([status, json.error?.code]).toEqual([400, 'SERVER_NOT_RUNNING_IN_HA_MODE'])
})
