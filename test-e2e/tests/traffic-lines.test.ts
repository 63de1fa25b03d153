import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { differences } from '../../packages/channel/testing/model-contents.js'
import { logInByOpenId, type Member } from '../member.js'
import type { Line } from '../router/lines.js'
import type { TestRouter } from '../router/router.js'
import type { Connection } from '../router/sdk.js'
import {
  type Dialed,
  exchange,
  type Hosted,
  openSession,
  startTraffic,
  type Traffic,
  until,
} from '../traffic.js'

const lines: readonly Line[] = ['1.1', '1.6', '2.0']
const logins = ['by a stored API session', 'by an access token'] as const
type Login = (typeof logins)[number]

let traffic: Traffic
const routers = new Map<Line, TestRouter>()
beforeAll(async () => {
  traffic = await startTraffic()
  for (const line of lines) {
    const name = `router-${line.replace('.', '-')}`
    routers.set(line, await traffic.router(name, { line, hasLinks: true, closeWaitMs: 500 }))
  }
  await until(() => [...routers.values()].every(({ links }) => links?.all().length === lines.length - 1))
})
afterAll(() => traffic[Symbol.asyncDispose]())

function routerOf(line: Line): TestRouter {
  const router = routers.get(line)
  if (!router) throw new Error(`no router of ${line}`)
  return router
}

let count = 0
/** An identity that has signed in. */
async function member(role: 'host' | 'client', login: Login): Promise<Member> {
  const enrolled = await traffic.member(`${role}-${++count}`, role)
  if (login === 'by a stored API session') return enrolled
  return logInByOpenId(traffic.server, enrolled.id, enrolled.certificate)
}

/** A service that an application at the line hosts. */
const hosted = async (line: Line, login: Login): Promise<Hosted> =>
  traffic.hosted(`service-${++count}`, routerOf(line), await member('host', login))

/** An application at the line that has dialed a service. */
const dialed = async (serviceId: string, line: Line, login: Login): Promise<Dialed> =>
  traffic.dialed(serviceId, routerOf(line), await member('client', login))

const sent = randomBytes(100_000)
async function expectEcho(connection: Connection): Promise<void> {
  expect((await exchange(connection, sent)).equals(sent)).toBe(true)
}

const pairs = lines.flatMap((host) => lines.map((client) => [host, client] as const))
test.each(pairs.flatMap((pair) => logins.map((login) => [...pair, login] as const)))(
  'an application at a %s router is reached from a %s router %s',
  async (hostLine, clientLine, login) => {
    const { serviceId, accepted } = await hosted(hostLine, login)
    const { connection, member } = await dialed(serviceId, clientLine, login)
    await expectEcho(connection)
    if (hostLine === '2.0' && clientLine === '2.0')
      expect(accepted[0]?.dialer).toBe(
        (await traffic.admin.request<{ name: string }>('GET', `/identities/${member.id}`)).name,
      )
  },
)

const ends: readonly (readonly [string, (member: Member) => Promise<unknown>])[] = [
  [
    'its policy no longer grants the service',
    ({ id }) => traffic.admin.request('PATCH', `/identities/${id}`, { roleAttributes: [] }),
  ],
  [
    'its identity is disabled',
    ({ id }) => traffic.admin.request('POST', `/identities/${id}/disable`, { durationMinutes: 0 }),
  ],
  ['its identity is deleted', ({ id }) => traffic.admin.request('DELETE', `/identities/${id}`)],
  ['it signs out', (member) => member.request('DELETE', '/current-api-session')],
]
const endings = lines.flatMap((line) =>
  logins.flatMap((login) => ends.map(([when, end]) => [line, login, when, end] as const)),
)

test.each(endings)(
  'what an application at a %s router dialed %s ends when %s',
  async (line, login, _, end) => {
    const { serviceId } = await hosted('1.1', logins[0])
    const { member, connection } = await dialed(serviceId, line, login)
    await expectEcho(connection)
    await end(member)
    await connection.ended
  },
)

test.each(endings)(
  'what an application at a %s router hosts %s ends when %s',
  async (line, login, _, end) => {
    const { serviceId, member } = await hosted(line, login)
    const { connection } = await dialed(serviceId, '1.1', logins[0])
    await expectEcho(connection)
    const terminators = async () =>
      await traffic.admin.request<object[]>('GET', `/services/${serviceId}/terminators`)
    expect(await terminators()).toHaveLength(1)
    await end(member)
    await until(async () => (await terminators()).length === 0)
    await connection.ended
  },
)

test.each(lines)(
  'the end of a session ends what was dialed and hosted with it at a %s router',
  async (line) => {
    const host = await hosted(line, logins[0])
    const { sdk, member, session, connection } = await dialed(host.serviceId, line, logins[0])
    expect(session.token).toMatch(/^ey/)
    await expectEcho(connection)
    await traffic.admin.request('DELETE', `/sessions/${session.id}`)
    await connection.ended
    await expect(sdk.dial(session.token)).rejects.toThrow()

    const again = await openSession(member, host.serviceId, 'Dial')
    const second = await sdk.dial(again.token)
    await expectEcho(second)
    await traffic.admin.request('DELETE', `/sessions/${host.session.id}`)
    await second.ended
    await expect(sdk.dial(again.token)).rejects.toThrow()
  },
)

test('a list of the routers of a service says whether a session still exists', async () => {
  const { serviceId, member, session } = await hosted('1.1', logins[0])
  const routersFor = (token: string) =>
    member.call('GET', `/services/${serviceId}/edge-routers`, undefined, { 'session-token': token })
  const { token, id } = session
  expect((await routersFor(token)).status).toBe(200)
  const shown = await member.request<{ token: string }>('GET', `/sessions/${id}`)
  expect(shown.token).toMatch(/^ey/)
  expect((await routersFor(shown.token)).status).toBe(200)
  expect((await routersFor(`${token.slice(0, -4)}AAAA`)).status).toBe(401)
  await traffic.admin.request('DELETE', `/sessions/${id}`)
  expect((await routersFor(token)).status).toBe(404)
})

test('a router of 2.0 that is an identity hosts and dials what its policies grant, and no longer', async () => {
  const router = await traffic.router('tunneler', {
    line: '2.0',
    isTunneler: true,
    hasLinks: true,
    body: { isTunnelerEnabled: true },
  })
  const { admin } = traffic
  await admin.request('PATCH', `/identities/${router.id}`, { roleAttributes: ['host', 'client'] })
  const name = `service-${++count}`
  const serviceId = await traffic.service(name)
  await until(() => router.tunneler?.hosted().includes(serviceId))
  const { connection } = await dialed(serviceId, '1.1', logins[0])
  await expectEcho(connection)
  expect((await router.tunneler?.exchange(name, sent))?.equals(sent)).toBe(true)
  await admin.request('PATCH', `/identities/${router.id}`, { roleAttributes: [] })
  await connection.ended
  await expect(router.tunneler?.exchange(name, sent)).rejects.toThrow()
})

test.each(['1.1', '2.0'] as const)(
  'what was dialed at a %s router by a stored API session ends when its endpoint fails a posture check',
  async (line) => {
    const { serviceId } = await hosted(line, logins[0])
    const client = await member('client', logins[0])
    const sdk = await traffic.connect(client, routerOf(line))
    await traffic.requireDomain(serviceId, 'a.example')
    const respond = (domain: string) =>
      client.request('POST', '/posture-response', { id: 'any', typeId: 'DOMAIN', domain })
    await expect(openSession(client, serviceId, 'Dial')).rejects.toThrow()
    await respond('a.example')
    const connection = await sdk.dial((await openSession(client, serviceId, 'Dial')).token)
    await expectEcho(connection)
    await respond('b.example')
    await connection.ended
  },
)

test('a router of 2.0 decides about posture checks of an application with an access token', async () => {
  const { serviceId } = await hosted('2.0', logins[0])
  const client = await member('client', logins[1])
  const sdk = await traffic.connect(client, routerOf('2.0'))
  await traffic.requireDomain(serviceId, 'a.example')
  const router = routerOf('2.0')
  const policies = () => [...router.model.contents['service-policy'].values()]
  await until(() => policies().some((one) => one.services.has(serviceId) && one.postureChecks.size > 0))
  const { token } = await openSession(client, serviceId, 'Dial')
  await expect(sdk.dial(token)).rejects.toThrow('no access to service')
  sdk.report({ domain: 'a.example' })
  const connection = await sdk.dial(token)
  await expectEcho(connection)
  sdk.report({ domain: 'b.example' })
  await connection.ended
})

test('routers with equal scopes have equal models', async () => {
  const [one, other] = [routerOf('1.6'), routerOf('2.0')]
  const withoutRevocations = (router: TestRouter) => ({ ...router.model.contents, revocations: new Map() })
  await expect.poll(() => differences(withoutRevocations(one), withoutRevocations(other))).toEqual([])
  expect(one.model.contents.identity.size).toBeGreaterThan(0)
})
