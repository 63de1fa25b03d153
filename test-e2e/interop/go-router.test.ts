import { once as onceEmitted } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTraffic, type Traffic, until } from '../traffic.js'
import { type Application, startApplication } from './application.js'
import {
  type Applications,
  type Event,
  invite,
  MEGABYTE,
  openApplications,
  type Pair,
  type Sdk,
  type StartOptions,
  transfer,
} from './applications.js'
import { goVersions } from './go.js'
import { type GoRouter, goRouterProgram, goRouterVersion, startGoRouter } from './go-router.js'
import { jvmProgram } from './jvm.js'

const newest = 'go-1.7.0'
const sdks: readonly Sdk[] = [...goVersions.map((version) => `go-${version}` as const), 'c']

let traffic: Traffic
let folder: string
let program: string | undefined
let applications: Applications
let router: GoRouter

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'overlay-go-router-'))
  try {
    program = await goRouterProgram()
  } catch (err) {
    if (process.env.CI === 'true') throw err
    console.warn(`skipping tests, because the router cannot be built: ${err}`)
    return
  }
  applications = await openApplications(sdks, () => traffic)
  traffic = await startTraffic({ sessions: 2 })
  const { admin, network } = traffic
  router = await startGoRouter({
    program,
    admin,
    folder,
    name: 'real',
    controllers: network.controllers,
    tunnel: 'host',
  })
}, 1_800_000)
afterAll(async () => {
  await applications?.[Symbol.asyncDispose]()
  await router?.[Symbol.asyncDispose]()
  await traffic?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

const canRun = (...some: readonly Sdk[]): boolean =>
  program !== undefined && some.every((sdk) => applications.has(sdk))

type Side = Pick<StartOptions, 'sdk' | 'scheme'>
const pairs: readonly [Side, Side][] = [
  [
    { sdk: newest, scheme: 'oidc' },
    { sdk: newest, scheme: 'oidc' },
  ],
  [
    { sdk: newest, scheme: 'sessions' },
    { sdk: newest, scheme: 'announced' },
  ],
  [{ sdk: 'go-1.2.3' }, { sdk: newest }],
  [{ sdk: newest }, { sdk: 'go-1.2.3' }],
  [{ sdk: 'go-0.23.42' }, { sdk: 'go-0.23.42' }],
  [{ sdk: 'c' }, { sdk: newest }],
  [{ sdk: newest }, { sdk: 'c' }],
]
const titled = pairs.map(
  ([host, client]) =>
    [`${host.sdk} ${host.scheme ?? ''}`, `${client.sdk} ${client.scheme ?? ''}`, host, client] as const,
)
test.for(titled)(
  `a router ${goRouterVersion} carries 10 MB between a host on %s and a client on %s, and back`,
  async ([, , host, client], { skip }) => {
    if (!canRun(host.sdk, client.sdk)) skip()
    await transfer(await applications.pair(host, client), 10 * MEGABYTE)
  },
)

test(`a router ${goRouterVersion} carries 1 MB for a client on the JVM SDK, and back`, async ({ skip }) => {
  if (!canRun(newest)) skip()
  const [java, ...args] = await jvmProgram()
  const service = 'for-java'
  const serviceId = await traffic.service(service, { encryptionRequired: true })
  const { token } = await invite(traffic.admin, folder, 'java', ['client'])
  await applications.start('host', service, { sdk: newest })
  await applications.hosted(serviceId)
  await using jvm = startApplication(java, args, { timeoutMs: 120_000 })
  jvm.write(JSON.stringify({ action: 'enroll', token, service, bytes: MEGABYTE }))
  const visited = await jvm.next<{ error?: string }>()
  expect(visited, `${visited.error} ${jvm.log()}`).toMatchObject({ services: [service], echoed: true })
})

/** Begins a transfer, and stops in its middle. */
async function begin(scheme: 'oidc' | 'sessions'): Promise<Pair> {
  const two = await applications.pair({ sdk: newest, scheme }, { sdk: newest, scheme })
  two.client.write(`transfer ${10 * MEGABYTE} ${MEGABYTE}`)
  expect(await two.client.next<Event>()).toMatchObject({ event: 'middle' })
  expect(await two.host.next<Event>()).toMatchObject({ event: 'accepted' })
  return two
}

const ends: Readonly<Record<string, (two: Pair) => Promise<unknown>>> = {
  async 'a removed policy'({ name }) {
    const [policy] = await traffic.admin.request<{ id: string }[]>(
      'GET',
      `/service-policies?filter=name="${name}-dial"`,
    )
    await traffic.admin.request('DELETE', `/service-policies/${policy?.id}`)
  },
  'a lost role attribute': ({ client }) =>
    traffic.admin.request('PATCH', `/identities/${client.identityId}`, { roleAttributes: [] }),
  'a disabled identity': ({ client }) =>
    traffic.admin.request('POST', `/identities/${client.identityId}/disable`, { durationMinutes: 0 }),
  async 'a sign-out'({ client }) {
    client.write('sign-out')
  },
}
test.for(
  Object.entries(ends).flatMap(([what, end]) =>
    (['oidc', 'sessions'] as const).map((by) => [what, by, end] as const),
  ),
)('%s ends a transfer of clients that have signed in by %s', async ([, by, end], { skip }) => {
  if (!canRun(newest)) skip()
  const two = await begin(by)
  await end(two)
  expect(await two.client.next<Event>()).toMatchObject({ event: 'ended', bytes: MEGABYTE })
  expect(await two.host.next<Event>()).toMatchObject({ event: 'ended' })
})

test('a transfer continues while each replica is killed in turn, and clients dial', async ({ skip }) => {
  if (!canRun(newest)) skip()
  const two = await begin('oidc')
  const { processes } = traffic.network
  const other = await applications.start('dial', two.name, { sdk: newest })
  for (const id of [...processes.keys()].filter((id) => id.startsWith('sessions'))) {
    const pid = processes.get(id)?.pid()
    if (pid === undefined) throw new Error(`there is no process ${id}`)
    process.kill(pid, 'SIGKILL')
    await untilDialed(other)
    await until(() => ![pid, undefined].includes(processes.get(id)?.pid()))
  }
  two.client.write('continue')
  expect(await two.client.next<Event>()).toMatchObject({ event: 'done', bytes: 10 * MEGABYTE })
  // a router of 1.7 notices within half a minute that its subscription has ended
  const created = await applications.start('dial', two.name, { sdk: newest })
  await untilDialed(created)
})

/** A router that asks a replica as it dies waits until the client gives up. */
const untilDialed = (client: Application) =>
  until(async () => {
    client.write(`transfer ${MEGABYTE} ${MEGABYTE}`)
    return (await client.next<Event>()).event === 'done'
  })

test('its tunneler hosts a service for clients', async ({ skip }) => {
  if (!canRun(newest)) skip()
  const { admin } = traffic
  await using server = createServer((socket) => socket.on('error', () => undefined).pipe(socket))
  await onceEmitted(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const [type] = await admin.request<{ id: string }[]>('GET', '/config-types?filter=name="host.v1"')
  const data = { protocol: 'tcp', address: '127.0.0.1', port }
  const config = await admin.create('configs', { name: 'hosted', configTypeId: type?.id, data })
  const serviceId = await traffic.service('hosted', { encryptionRequired: true, configs: [config] })
  await admin.create('service-policies', {
    name: 'hosted-by-router',
    type: 'Bind',
    semantic: 'AnyOf',
    serviceRoles: [`@${serviceId}`],
    identityRoles: [`@${router.id}`],
  })
  await until(async () => {
    const terminators = await admin.request<object[]>('GET', `/services/${serviceId}/terminators`)
    return terminators.length > 0
  })
  const client = await applications.start('dial', 'hosted', { sdk: newest })
  await transfer({ client }, MEGABYTE)
})
