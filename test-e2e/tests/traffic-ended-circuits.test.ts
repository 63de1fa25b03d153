import { withClient } from '@overlay/launcher/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TestRouter } from '../router/router.js'
import {
  type Dialed,
  exchange,
  type Hosted,
  openSession,
  startTraffic,
  type Traffic,
  until,
} from '../traffic.js'

/** Only a test that fails waits as long. */
const WITHIN_MS = 60_000

let traffic: Traffic
let near: TestRouter
let far: TestRouter
beforeAll(async () => {
  traffic = await startTraffic({ sessions: 2 })
  const [first, second] = traffic.network.controllers
  // each is known to one replica only
  near = await traffic.router('near', { hasLinks: true, controllers: [first ?? ''] })
  far = await traffic.router('far', { hasLinks: true, controllers: [second ?? ''] })
  await until(() => near.links?.all().length === 1 && far.links?.all().length === 1)
})
afterAll(() => traffic[Symbol.asyncDispose]())

interface Revocation {
  readonly name: string
  /** wire: routers leave connections to a host without access open for a while, although they carry nothing. */
  readonly staysOpen?: true
  /** Ends the access of the client or of the host. */
  revoke(client: Dialed, host: Hosted, service: string): Promise<unknown>
}

const remove = (path: string) => traffic.admin.request('DELETE', path)
async function policyId(name: string): Promise<string | undefined> {
  const path = `/service-policies?filter=name="${name}"`
  const [policy] = await traffic.admin.request<{ id: string }[]>('GET', path)
  return policy?.id
}
const removePolicy = async (name: string) => remove(`/service-policies/${await policyId(name)}`)

const revocations: Revocation[] = [
  {
    name: 'the client fails a posture check',
    revoke: (_client, { serviceId }) => traffic.requireDomain(serviceId, 'corp.example'),
  },
  {
    name: 'the identity of the client is deleted',
    revoke: ({ member }) => remove(`/identities/${member.id}`),
  },
  {
    name: 'the identity of the client is disabled',
    revoke: ({ member }) =>
      traffic.admin.request('POST', `/identities/${member.id}/disable`, { durationMinutes: 60 }),
  },
  {
    name: 'the dial policy is deleted',
    revoke: (_client, _host, service) => removePolicy(`${service}-dial`),
  },
  {
    name: 'the session of the client is deleted',
    revoke: ({ session }) => remove(`/sessions/${session.id}`),
  },
  {
    name: 'the client logs out',
    revoke: ({ member }) => member.request('DELETE', '/current-api-session'),
  },
  {
    name: 'the API session of the client is deleted',
    async revoke({ member }) {
      const { id } = await member.request<{ id: string }>('GET', '/current-api-session')
      await remove(`/api-sessions/${id}`)
    },
  },
  {
    name: 'the identity of the host is deleted',
    revoke: (_, { member }) => remove(`/identities/${member.id}`),
  },
  {
    staysOpen: true,
    name: 'the bind policy is deleted',
    revoke: (_client, _host, service) => removePolicy(`${service}-bind`),
  },
  {
    staysOpen: true,
    name: 'the session of the host is deleted',
    revoke: (_, { session }) => remove(`/sessions/${session.id}`),
  },
]

test.for(revocations)('a circuit ends when $name', async ({ revoke, staysOpen }, { task }) => {
  const service = `service-${task.id}`
  const host = await traffic.hosted(service, far)
  const client = await traffic.dialed(host.serviceId, near)
  expect((await exchange(client.connection, Buffer.from('hello'))).toString()).toBe('hello')

  await revoke(client, host, service)
  const both = Promise.all([client.connection.ended, host.accepted[0]?.ended])
  if (!staysOpen)
    expect(await Promise.race([both, pause(WITHIN_MS)])).toEqual([expect.any(String), expect.any(String)])
  await until(() => near.circuits().length === 0 && far.circuits().length === 0, WITHIN_MS)
  expect(await traffic.routePath(client.session)).toEqual([])
})

test('a session that was deleted opens no circuit', async () => {
  const host = await traffic.hosted('deleted-session', far)
  const client = await traffic.dialed(host.serviceId, near)
  await remove(`/sessions/${client.session.id}`)
  await expect(client.sdk.dial(client.session.token)).rejects.toThrow()
  const again = await openSession(client.member, host.serviceId, 'Dial')
  const connection = await client.sdk.dial(again.token)
  expect((await exchange(connection, Buffer.from('again'))).toString()).toBe('again')
})

/** Until it is restored, the policy for all leaves out every router but these. */
async function restrict(kind: string, routers: readonly TestRouter[]): Promise<() => Promise<unknown>> {
  const [policy] = await traffic.admin.request<{ id: string }[]>('GET', `/${kind}?filter=name="all"`)
  const write = (edgeRouterRoles: string[]) =>
    traffic.admin.request('PATCH', `/${kind}/${policy?.id}`, { edgeRouterRoles })
  await write(routers.map(({ id }) => `@${id}`))
  return () => write(['#all'])
}

test('a router that belongs to no policy of the service is refused', async () => {
  const host = await traffic.hosted('other-router', far)
  const other = await traffic.router('other')
  const client = await traffic.dialed(host.serviceId, near)
  const restore = await restrict('service-edge-router-policies', [near, far])
  const sdk = await traffic.connect(client.member, other)
  await expect(sdk.dial(client.session.token)).rejects.toThrow('invalid edge router for session')
  await restore()
})

test('a router that belongs to no policy is refused while policy cannot reach the newest commits of identity', async () => {
  const host = await traffic.hosted('silent-identity', far)
  const other = await traffic.router('outside')
  const client = await traffic.dialed(host.serviceId, near)
  const restore = await restrict('service-edge-router-policies', [near, far])
  const sdk = await traffic.connect(client.member, other)
  const { databaseUrl, processes } = traffic.network
  const move = (by: number) =>
    withClient(databaseUrl, (db) => db.query(`update identity.stream set number = number + ${by}`))
  const identity = processes.get('identity')?.pid() ?? 0
  process.kill(identity, 'SIGSTOP')
  try {
    await move(1) // as by a commit just before it hung
    await expect(sdk.dial(client.session.token)).rejects.toThrow('invalid edge router for session')
  } finally {
    await move(-1)
    process.kill(identity, 'SIGCONT')
  }
  await restore()
})

test('a router that belongs to no policy of the identity closes its connections', async () => {
  const host = await traffic.hosted('left-router', far)
  const other = await traffic.router('left')
  const client = await traffic.dialed(host.serviceId, near)
  const sdk = await traffic.connect(client.member, other)
  const restore = await restrict('edge-router-policies', [near, far])
  await until(() => !other.apiSessions.get(client.member.apiSessionToken))
  await expect(sdk.dial(client.session.token)).rejects.toThrow('closed')
  await exchange(client.connection, Buffer.from('near'))
  await restore()
})

const pause = (ms: number): Promise<undefined> =>
  new Promise((resolve) => setTimeout(() => resolve(undefined), ms).unref())
