import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Client, openClient } from '../client.js'
import { type EventStream, streamEvents } from '../event-stream.js'
import type { TestRouter } from '../router/router.js'
import { openSession, startTraffic, type Traffic, until } from '../traffic.js'

let traffic: Traffic
let fabric: Client
let token: string
/** Each is connected to one replica only. */
let routers: readonly TestRouter[]

beforeAll(async () => {
  traffic = await startTraffic({ replicas: 2 })
  token = await logIn()
  fabric = openClient(traffic.server, '/fabric/v1')
  fabric.use(token)
  const { controllers } = traffic.network
  routers = await Promise.all(
    controllers.map((address, n) =>
      traffic.router(`router-${n}`, { controllers: [address], hasLinks: true }),
    ),
  )
})
afterAll(async () => {
  fabric[Symbol.dispose]()
  await traffic[Symbol.asyncDispose]()
})

async function logIn(): Promise<string> {
  using client = openClient(traffic.server, '/edge/management/v1')
  const credentials = { username: 'admin', password: 'correct horse' }
  return (await client.request<{ token: string }>('POST', '/authenticate?method=password', credentials)).token
}

const stream = (namespaces: readonly string[], own = token): Promise<EventStream> =>
  streamEvents({ address: traffic.network.address, caPem: traffic.network.caPem, token: own }, namespaces)

type Rows = readonly Readonly<Record<string, unknown>>[]
const list = (path: string): Promise<Rows> => fabric.request<Rows>('GET', path)
const ids = () => routers.map(({ id }) => id).sort()

test('connected routers of all replicas are listed with version and link listeners', async () => {
  const connected = (await list('/routers')).filter((router) => router.connected)
  expect(connected.map(({ id }) => id).sort()).toEqual(ids())
  for (const router of connected)
    expect(router).toMatchObject({
      versionInfo: { version: 'v1.1.13', os: 'linux', arch: 'amd64' },
      listenerAddresses: [{ address: expect.stringContaining(':'), protocol: expect.any(String) }],
    })
})

test('routers of all replicas are inspected, by id or name', async () => {
  const inspect = (appRegex: string, ...requestedValues: string[]) =>
    fabric.call('POST', '/inspections', { appRegex, requestedValues })
  const { body } = await inspect('^router-', 'links')
  expect(body).toMatchObject({ success: true, errors: [] })
  const answers = body as unknown as { values: { appId: string; name: string }[] }
  expect(answers.values.map(({ appId }) => appId).sort()).toEqual(ids())
  const own = (await inspect('.*', 'connected-routers')).body as unknown as { values: { value: Rows }[] }
  expect(own.values.flatMap(({ value }) => value.map(({ Id }) => Id)).sort()).toEqual(ids())
  expect((await inspect('a(', 'links')).body).toMatchObject({ success: false, values: [] })
})

test('a router that goes offline and comes back is one event each, whichever replica has it', async () => {
  using events = await stream(['fabric.routers'])
  const [router] = routers
  const disable = (disabled: boolean) => fabric.request('PATCH', `/routers/${router?.id}`, { disabled })
  await disable(true)
  const gone = { event_type: 'router-offline', router_id: router?.id, router_online: false }
  expect(await events.event(gone)).toMatchObject({ namespace: 'fabric.routers', ...gone })
  await disable(false)
  await events.event({ event_type: 'router-online', router_id: router?.id })
  expect(events.events.map(({ event_type }) => event_type)).toEqual(['router-offline', 'router-online'])
})

test('a login, a session and their ends are events, without their tokens', async () => {
  using events = await stream(['edge.sessions', 'edge.apiSessions'])
  const serviceId = await traffic.service('seen')
  const member = await traffic.member('seen', 'client')
  const { id } = await openSession(member, serviceId, 'Dial')
  const session = { id, session_type: 'Dial', service_id: serviceId, identity_id: member.id, token: '' }
  await events.event({ namespace: 'edge.sessions', event_type: 'created', ...session })
  await events.event({
    namespace: 'edge.apiSessions',
    event_type: 'created',
    identity_id: member.id,
    ip_address: '127.0.0.1',
    token: '',
  })
  await traffic.admin.request('DELETE', `/identities/${member.id}`)
  await events.event({ namespace: 'edge.apiSessions', event_type: 'deleted', identity_id: member.id })
  await events.event({ namespace: 'edge.sessions', event_type: 'deleted', ...session })
})

test('a stream ends with the session of its administrator', async () => {
  const own = await logIn()
  using events = await stream(['fabric.routers'], own)
  using client = openClient(traffic.server, '/edge/management/v1')
  client.use(own)
  await client.request('DELETE', '/current-api-session')
  expect(await events.closed).toBe(1008)
})

test('a link is listed, gets another cost, is taken out of service, and is deleted', async () => {
  const [link] = await until(async () => {
    const links = await list('/links')
    return links.length > 0 && links
  })
  const found = link as Rows[number] & { id: string; sourceRouter: object; destRouter: object }
  expect([found.sourceRouter, found.destRouter]).toMatchObject([{ entity: 'routers' }, { entity: 'routers' }])
  await fabric.request('PATCH', `/links/${found.id}`, { staticCost: 40, down: true })
  const [changed] = await list(`/links?filter=${encodeURIComponent(`id = "${found.id}"`)}`)
  expect(changed).toMatchObject({ staticCost: 40, down: true })
  await fabric.request('DELETE', `/links/${found.id}`)
  expect((await fabric.call('GET', `/links/${found.id}`)).status).toBe(404)
})
