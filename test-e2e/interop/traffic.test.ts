import type { RouterApiSession } from '@overlay/channel'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TestRouter } from '../router/router.js'
import { startTraffic, type Traffic, until } from '../traffic.js'
import {
  type Applications,
  type Event,
  MEGABYTE,
  openApplications,
  type Sdk,
  transfer,
} from './applications.js'
import { goVersions } from './go.js'

const sdks: readonly Sdk[] = [...goVersions.map((version) => `go-${version}` as const), 'c']

let traffic: Traffic
let router: TestRouter
const routers: TestRouter[] = []
let applications: Applications

beforeAll(async () => {
  applications = await openApplications(sdks, () => traffic)
  traffic = await startTraffic({ sessions: 2 })
  router = await traffic.router('router', { hasLinks: true })
  routers.push(router)
}, 600_000)
afterAll(async () => {
  await applications?.[Symbol.asyncDispose]()
  await traffic?.[Symbol.asyncDispose]()
})

const pair = (host: Sdk, client: Sdk) => applications.pair({ sdk: host }, { sdk: client })

const [oldest = 'c'] = sdks
const pairs: [Sdk, Sdk][] = [
  ...sdks.filter((sdk) => sdk !== 'c').map((sdk): [Sdk, Sdk] => [sdk, sdk]),
  ['c', 'go-1.2.3'],
  [oldest, 'c'],
]
test.for(pairs)(
  '10 MB travel between a host on %s and a client on %s, and back',
  async ([host, client], { skip }) => {
    if (!applications.has(host) || !applications.has(client)) skip()
    await transfer(await pair(host, client), 10 * MEGABYTE)
  },
)

test('10 MB travel over a link between two routers, and back', async ({ skip }) => {
  if (!applications.has('go-1.2.3')) skip()
  const far = await traffic.router('far', { hasLinks: true })
  routers.push(far)
  await until(() => far.links?.all().length === 1)
  await assignRouters(far)
  const { client } = await pair('go-1.2.3', 'go-1.2.3')
  client.write(`transfer ${10 * MEGABYTE} ${MEGABYTE}`)
  expect(await client.next<Event>()).toMatchObject({ event: 'middle' })
  expect(far.circuits()).toHaveLength(1)
  client.write('continue')
  const done = await client.next<Event>()
  expect(done).toMatchObject({ event: 'done', bytes: 10 * MEGABYTE })
  expect(done.received).toBe(done.sent)
})

/** Those that clients can use at any router. */
const apiSessions = (): RouterApiSession[] => {
  const all = routers.flatMap(({ apiSessions }) =>
    apiSessions.tokens().flatMap((token) => apiSessions.get(token) ?? []),
  )
  return all.filter(({ certFingerprints }) => certFingerprints.length > 0)
}

/** Lets hosts use this router only, and clients the other one. */
async function assignRouters(far: TestRouter): Promise<void> {
  const { admin } = traffic
  const [all] = await admin.request<{ id: string }[]>('GET', '/edge-router-policies?filter=name="all"')
  const near = { identityRoles: ['#client'], edgeRouterRoles: [`@${router.id}`] }
  await admin.request('PATCH', `/edge-router-policies/${all?.id}`, near)
  const hosts = { name: 'far', semantic: 'AnyOf', identityRoles: ['#host'], edgeRouterRoles: [`@${far.id}`] }
  await admin.create('edge-router-policies', hosts)
}

test('a removed policy ends a transfer at both ends', async ({ skip }) => {
  if (!applications.has('go-1.2.3')) skip()
  const { name, host, client } = await pair('go-1.2.3', 'go-1.2.3')
  client.write(`transfer ${10 * MEGABYTE} ${MEGABYTE}`)
  expect(await client.next<Event>()).toMatchObject({ event: 'middle' })
  expect(await host.next<Event>()).toMatchObject({ event: 'accepted' })
  const [policy] = await traffic.admin.request<{ id: string }[]>(
    'GET',
    `/service-policies?filter=name="${name}-dial"`,
  )
  await traffic.admin.request('DELETE', `/service-policies/${policy?.id}`)
  expect(await client.next<Event>()).toMatchObject({ event: 'ended', bytes: MEGABYTE })
  expect(await host.next<Event>()).toMatchObject({ event: 'ended' })
})

test('a transfer continues while both ends refresh their access tokens, and ends with the API session', async ({
  skip,
}) => {
  if (!applications.has('go-1.2.3')) skip()
  const known = new Set(apiSessions().map(({ token }) => token))
  const { host, client } = await pair('go-1.2.3', 'go-1.2.3')
  client.write(`transfer ${10 * MEGABYTE} ${MEGABYTE}`)
  expect(await client.next<Event>()).toMatchObject({ event: 'middle' })
  expect(await host.next<Event>()).toMatchObject({ event: 'accepted' })
  for (const one of [client, host, client, host]) {
    one.write('refresh')
    expect(await one.next<Event>()).toEqual({ event: 'refreshed', bytes: 0 })
  }
  const added = apiSessions().filter(({ token }) => !known.has(token))
  expect([added.length, new Set(added.map(({ id }) => id)).size]).toEqual([6, 2])
  expect(added.every(({ token }) => token.startsWith('eyJ'))).toBe(true)
  client.write('continue')
  expect(await client.next<Event>()).toMatchObject({ event: 'done', bytes: 10 * MEGABYTE })
  expect(await host.next<Event>()).toMatchObject({ event: 'ended', bytes: 10 * MEGABYTE })

  client.write(`transfer ${10 * MEGABYTE} ${MEGABYTE}`)
  expect(await client.next<Event>()).toMatchObject({ event: 'middle' })
  await traffic.admin.request('POST', `/identities/${client.identityId}/disable`, { durationMinutes: 0 })
  expect(await client.next<Event>()).toMatchObject({ event: 'ended', bytes: MEGABYTE })
  const tokens = new Set(added.map(({ token }) => token))
  const left = apiSessions().filter(({ token }) => tokens.has(token))
  expect(new Set(left.map(({ id }) => id)).size).toBe(1)
})

test('a transfer continues while the replica that set it up is killed', async ({ skip }) => {
  if (!applications.has('go-1.2.3')) skip()
  const { name, host, client } = await pair('go-1.2.3', 'go-1.2.3')
  client.write(`transfer ${10 * MEGABYTE} ${MEGABYTE}`)
  expect(await client.next<Event>()).toMatchObject({ event: 'middle' })
  const owner = router.circuits().at(-1)?.controllerId ?? ''
  const pid = traffic.network.processes.get(owner)?.pid()
  if (pid === undefined) throw new Error(`there is no process ${owner}`)
  process.kill(pid, 'SIGKILL')
  await until(() => router.controllers.get(owner) === undefined)
  const other = await applications.start('dial', name, { sdk: oldest })
  other.write(`transfer ${MEGABYTE} ${MEGABYTE}`)
  expect(await other.next<Event>()).toMatchObject({ event: 'done' })
  client.write('continue')
  const done = await client.next<Event>()
  expect(done).toMatchObject({ event: 'done', bytes: 10 * MEGABYTE })
  expect(done.received).toBe(done.sent)
  expect(host.log()).not.toContain('panic')
})
