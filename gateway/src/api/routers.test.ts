import { Fault } from '@overlay/rpc'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADMIN, ALICE } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())

const M = '/edge/management/v1'
const C = '/edge/client/v1'
const lastOf = (method: string) =>
  gateway.fakes.calls.findLast((call) => call.method === method)?.request as Record<string, unknown>

test('transit routers have two paths, and one in answers', async () => {
  const { json } = await gateway.request(`${M}/routers`, {
    method: 'POST',
    token: ADMIN,
    body: { name: 't' },
  })
  expect(json.data).toEqual({ _links: { self: { href: './transit-routers/new-id' } }, id: 'new-id' })
  expect(lastOf('sessions.entities.create')).toMatchObject({ kind: 'transit-routers' })
  await gateway.request(`${M}/routers`, { token: ADMIN })
  expect(lastOf('sessions.entities.list')).toMatchObject({ kind: 'transit-routers' })
})

test('a client lists where a service that it sees is hosted', async () => {
  const { status } = await gateway.request(`${C}/services/wiki/terminators`, { token: ALICE })
  expect(status).toBe(200)
  expect(lastOf('sessions.entities.list')).toMatchObject({
    kind: 'terminators',
    within: { symbol: 'service', value: 'wiki' },
    perspective: { asClient: true },
  })
  const hidden = await gateway.request(`${C}/services/nothing/terminators`, { token: ALICE })
  expect([hidden.status, hidden.json.error?.code]).toEqual([404, 'NOT_FOUND'])
})

test('a client lists the routers that its policies give it, an admin all', async () => {
  gateway.fakes.instead.set('policy.entities.select', async () => ({
    ids: ['r1'],
    roles: [],
    symbol: '',
    value: '',
  }))
  await gateway.request(`${C}/current-identity/edge-routers`, { token: ALICE })
  expect(lastOf('policy.entities.select')).toMatchObject({
    from: { kind: 'identities', id: 'i-2222' },
    link: 'edge-routers',
  })
  const request = { kind: 'edge-routers', perspective: { asClient: true } }
  expect(lastOf('sessions.entities.list')).toMatchObject({ ...request, within: { ids: ['r1'] } })
  await gateway.request(`${C}/current-identity/edge-routers`, { token: ADMIN })
  expect(lastOf('sessions.entities.list')).toMatchObject({
    ...request,
    within: { roles: [{ roles: ['#all'] }] },
  })
})

test('routers of a service are listed for a session only while its token is accepted', async () => {
  gateway.fakes.instead.set('policy.getCommonRouters', async () => ({ routers: [{ ids: [] }] }))
  gateway.fakes.instead.set('sessions.describeRouters', async () => ({ json: [] }))
  const path = `${C}/services/wiki/edge-routers`
  const statusWith = async (headers: Record<string, string>) =>
    (await gateway.request(path, { token: ALICE, headers })).status
  expect(await statusWith({})).toBe(200)
  const asked = () => gateway.fakes.calls.filter(({ method }) => method === 'sessions.checkSessionToken')
  expect(asked()).toHaveLength(0)
  gateway.fakes.instead.set('sessions.checkSessionToken', async () => ({ sessionId: 's1' }))
  const edgeRouters = [{ name: 'amsterdam', isOnline: true, urls: {} }]
  gateway.fakes.instead.set('sessions.entities.get', async () => ({
    json: Buffer.from(JSON.stringify({ edgeRouters })),
  }))
  const ofSession = await gateway.request(path, { token: ALICE, headers: { 'session-token': 'eyJ' } })
  expect(ofSession.json).toMatchObject({ data: { edgeRouters: [{ name: 'amsterdam', isOnline: true }] } })
  expect(lastOf('sessions.entities.get')).toMatchObject({ ref: { kind: 'sessions', id: 's1' } })
  expect(asked()).toMatchObject([{ request: { token: 'eyJ', serviceId: 'wiki' } }])
  for (const [code, status] of [
    ['UNAUTHORIZED', 401],
    ['NOT_FOUND', 404],
  ] as const) {
    gateway.fakes.instead.set('sessions.checkSessionToken', async () => {
      throw new Fault(code)
    })
    expect(await statusWith({ 'session-token': 'eyJ' })).toBe(status)
  }
})

test('the path of a session is in order', async () => {
  gateway.fakes.instead.set('sessions.getRoutePath', async () => ({ routerIds: ['r2', 'r1'] }))
  const { json } = await gateway.request(`${M}/sessions/s1/route-path`, { token: ALICE })
  expect(json).toEqual({ data: { routePath: ['r2', 'r1'] }, meta: {} })
})

test('the summary counts what every owner has, and nothing twice', async () => {
  const counts: Record<string, object> = {
    policy: { services: 3 },
    sessions: { 'edge-routers': 1, 'transit-routers': 2 },
  }
  for (const owner of ['identity', 'pki', 'policy', 'sessions'])
    gateway.fakes.instead.set(`${owner}.entities.count`, async () => ({ rows: counts[owner] ?? {} }))
  const { json } = await gateway.request(`${M}/summary`, { token: ADMIN })
  expect(json).toMatchObject({
    data: { services: 3, 'services.edge': 3, routers: 2, 'routers.edge': 1, identities: 0, mfas: 0 },
    meta: null,
  })
  expect(Object.keys(json.data as object)).toHaveLength(26)
})
