import { withClient } from '@overlay/launcher/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { type Client, openClient } from '../client.js'
import { type Network, startNetwork } from '../network.js'

const SESSIONS = 10_000

let network: Network
let admin: Admin
beforeAll(async () => {
  network = await startNetwork({ sessions: 2, policies: 2 })
  admin = await network.admin()
  await admin.create('edge-routers', { name: 'r' })
  const all = { semantic: 'AnyOf', edgeRouterRoles: ['#all'] }
  await admin.create('edge-router-policies', { name: 'all', identityRoles: ['#all'], ...all })
  await admin.create('service-edge-router-policies', { name: 'all', serviceRoles: ['#all'], ...all })
})
afterAll(() => network[Symbol.asyncDispose]())

const query = async (text: string, values: unknown[] = []): Promise<readonly Record<string, unknown>[]> =>
  (await withClient(network.databaseUrl, (client) => client.query(text, values))).rows

/** An identity with a session that may dial its own service. */
async function dialer(name: string) {
  const password = 'correct horse'
  const roles = { identityRoles: [`#${name}`], serviceRoles: [`#${name}`] }
  const body = { name, type: 'Device', isAdmin: false, roleAttributes: [name] }
  const identity = await admin.create('identities', body)
  await admin.create('authenticators', { method: 'updb', identityId: identity, username: name, password })
  const service = await admin.create('services', { name, encryptionRequired: true, roleAttributes: [name] })
  const policy = await admin.create('service-policies', { name, type: 'Dial', semantic: 'AnyOf', ...roles })
  const server = { addresses: [network.address], caPem: network.caPem }
  const client = openClient(server, '/edge/client/v1')
  const login = { username: name, password }
  client.use((await client.request<{ token: string }>('POST', '/authenticate?method=password', login)).token)
  return { identity, service, policy, client, roles }
}

const dial = (client: Client, serviceId: string) =>
  client.call('POST', '/sessions', { serviceId, type: 'Dial' })

const sessionsOf = async (serviceId: string): Promise<number> =>
  Number((await query('select count(*) from sessions.session where service_id = $1', [serviceId]))[0]?.count)

test('all sessions of a policy end with it, and creates continue in the meantime', async () => {
  const [many, other] = [await dialer('many'), await dialer('other')]
  await query(
    `insert into sessions.session
            (id, token, type, api_session_id, service_id, identity_id, service_policies, granting_policy_id)
     select 'many' || n, gen_random_uuid()::text, 'Dial', 'other' || n, $1, $2, array[$3], $3
       from generate_series(1, $4::int) as n`,
    [many.service, many.identity, many.policy, SESSIONS],
  )
  expect((await dial(many.client, many.service)).status).toBe(201)

  const statuses: number[] = []
  let isOver = false
  const creating = (async () => {
    while (!isOver) statuses.push((await dial(other.client, other.service)).status)
  })()
  await admin.request('DELETE', `/service-policies/${many.policy}`)
  await expect.poll(() => sessionsOf(many.service), { timeout: 120_000, interval: 20 }).toBe(0)
  isOver = true
  await creating
  expect(new Set(statuses)).toEqual(new Set([201]))
  expect(await sessionsOf(other.service)).toBe(1)
  const [audited] = await query(
    `select count(distinct entity_id) from sessions.audit where kind = 'sessions' and before->>'serviceId' = $1`,
    [many.service],
  )
  expect(Number(audited?.count)).toBe(SESSIONS + 1)
})

test('a create is not refused during changes of unrelated identities and policies', async () => {
  const who = await dialer('steady')
  const [other, elsewhere] = [await dialer('moving'), await dialer('elsewhere')]
  const services = [who.service]
  for (let n = 0; n < 30; n++) {
    const service = { name: `s${n}`, encryptionRequired: true, roleAttributes: ['steady'] }
    services.push(await admin.create('services', service))
  }
  let isOver = false
  const change = async (path: string, body: (n: number) => object) => {
    for (let n = 0; !isOver; n++) await admin.request('PATCH', path, body(n))
  }
  const changing = Promise.all([
    change(`/identities/${other.identity}`, (n) => ({ roleAttributes: ['moving', `n${n}`] })),
    change(`/service-policies/${elsewhere.policy}`, (n) => ({ tags: { n } })),
    change(`/services/${elsewhere.service}`, (n) => ({ tags: { n } })),
  ])
  const statuses: number[] = []
  for (const service of services) statuses.push((await dial(who.client, service)).status)
  isOver = true
  await changing
  expect(new Set(statuses)).toEqual(new Set([201]))
})

test('a session does not survive a revocation at the moment of its create', async () => {
  const who = await dialer('racing')
  for (let n = 0; n < 10; n++) {
    const [, created] = await Promise.all([
      admin.request('PATCH', `/service-policies/${who.policy}`, { identityRoles: [] }),
      dial(who.client, who.service),
    ])
    expect([201, 404]).toContain(created.status)
    await expect.poll(() => sessionsOf(who.service), { interval: 20 }).toBe(0)
    await admin.request('PATCH', `/service-policies/${who.policy}`, { identityRoles: ['#racing'] })
    await expect.poll(async () => (await dial(who.client, who.service)).status).toBe(201)
  }
})
