import { setTimeout as pause } from 'node:timers/promises'
import type { Admin } from '../admin.js'
import { openClient, type Server } from '../client.js'
import { type Load, startLoad } from '../load.js'
import { logIn, type Member } from '../member.js'
import { enrollRouter } from '../router/identity.js'
import { startRouter, type TestRouter } from '../router/router.js'
import { type Connection, connectSdk, echo, type TestSdk } from '../router/sdk.js'
import { exchange, openSession, until } from '../traffic.js'
import { developmentAdmin } from './tested.js'

/** Clients of a network that check every answer. None repeats a request, and none of their connections may end. */
export interface Clients extends AsyncDisposable {
  /**
   * Returns when each client has completed a round that began after this call, and a dial has succeeded. Throws what one has
   * failed with.
   */
  round(): Promise<void>
}

const PAUSE_MS = 50

export async function startClients(server: Server, admin: Admin, ctrlAddress: string): Promise<Clients> {
  const semantic = 'AnyOf'
  const all = ['#all']
  const edgeRouterRoles = all
  await admin.create('edge-router-policies', { name: 'all', semantic, identityRoles: all, edgeRouterRoles })
  await admin.create('service-edge-router-policies', {
    name: 'all',
    semantic,
    serviceRoles: all,
    edgeRouterRoles,
  })
  const serviceId = await admin.create('services', { name: 'wiki', encryptionRequired: false })
  const serviceRoles = [`@${serviceId}`]
  for (const type of ['Bind', 'Dial'] as const)
    await admin.create('service-policies', { name: type, type, semantic, serviceRoles, identityRoles: all })

  const router = await startRouter({
    identity: await enrollRouter(admin, server, { name: 'router' }),
    controllers: [ctrlAddress],
  })
  await enrollRouter(admin, server, { name: 'offline' }) // of a line that no replica has seen
  await until(async () => {
    const { isOnline } = await admin.request<{ isOnline: boolean }>('GET', `/edge-routers/${router.id}`)
    return isOnline
  })
  const host = await admin.enroll({ name: 'host' })
  const hosting = await connect(router, host)
  const bind = await openSession(host, serviceId, 'Bind')
  await hosting.host(bind.token, { onConnection: (connection: Connection) => echo(connection) })

  const load = startLoad()
  const member = await admin.enroll({ name: 'member' })
  addApiClients(load, { server, admin, member, serviceId })
  const dialer = await admin.enroll({ name: 'dialer' })
  const dialing = await connect(router, dialer)
  const dial = async () => dialing.dial((await openSession(dialer, serviceId, 'Dial')).token)
  load.add('a connection through the router', exchanges(await dial()))
  async function dialAnew(): Promise<void> {
    await until(() => router.controllers.any()) // until then, a router refuses dials
    const connection = await dial()
    await exchanges(connection)(0)
    connection.destroy()
  }
  return {
    async round() {
      await dialAnew()
      await load.round()
    },
    async [Symbol.asyncDispose]() {
      try {
        await load[Symbol.asyncDispose]()
      } finally {
        for (const one of [dialing, hosting, router]) await one[Symbol.asyncDispose]()
      }
    },
  }
}

const connect = (router: TestRouter, { certificate, apiSessionToken }: Member): Promise<TestSdk> =>
  connectSdk({ url: router.url ?? '', certificate, caPem: router.identity.caPem, apiSessionToken })

const exchanges = (connection: Connection) => async (count: number) => {
  const sent = `round ${count}`
  equal(`${await exchange(connection, Buffer.from(sent))}`, sent)
  await pause(PAUSE_MS)
}

interface ApiClients {
  readonly server: Server
  readonly admin: Admin
  readonly member: Member
  readonly serviceId: string
}

function addApiClients(load: Load, { server, admin, member, serviceId }: ApiClients): void {
  load.add('logins by certificate', async () => {
    using session = await logIn(server, member.id, member.certificate)
    const { identityId } = await session.request<{ identityId: string }>('GET', '/current-api-session')
    equal(identityId, member.id)
    await pause(PAUSE_MS)
  })
  load.add('logins by password', async () => {
    using client = openClient(server, '/edge/management/v1')
    const { token } = await client.request<{ token: string }>(
      'POST',
      '/authenticate?method=password',
      developmentAdmin,
    )
    client.use(token)
    const { name } = await client.request<{ name: string }>('GET', '/current-identity')
    equal(name, 'Default Admin')
    await client.request('DELETE', '/current-api-session')
    await pause(4 * PAUSE_MS) // each costs a hash
  })
  load.add('sessions', async () => {
    const { id } = await openSession(member, serviceId, 'Dial')
    const found = await member.request<{ id: string; service: { id: string } }>('GET', `/sessions/${id}`)
    equal(found.service.id, serviceId)
    await member.request('DELETE', `/sessions/${id}`)
    await pause(PAUSE_MS)
  })
  load.add('reads', async () => {
    equal((await member.services()).join(), 'wiki')
    await pause(PAUSE_MS)
  })
  load.add('writes of policy', async (count) => {
    const name = `service ${count}`
    const id = await admin.create('services', { name, encryptionRequired: true })
    equal((await admin.request<{ name: string }>('GET', `/services/${id}`)).name, name)
    await admin.request('PATCH', `/services/${id}`, { name: `${name} renamed` })
    equal((await admin.request<{ name: string }>('GET', `/services/${id}`)).name, `${name} renamed`)
    await admin.request('DELETE', `/services/${id}`)
    equal((await admin.call('GET', `/services/${id}`)).status, 404)
    await pause(PAUSE_MS)
  })
  load.add('enrollments', async (count) => {
    using enrolled = await admin.enroll({ name: `enrolled ${count}` })
    equal((await enrolled.services()).join(), 'wiki')
    await admin.request('DELETE', `/identities/${enrolled.id}`)
    await pause(4 * PAUSE_MS)
  })
}

function equal<T>(actual: T, expected: T): void {
  if (actual !== expected) throw new Error(`expected ${expected}, received ${actual}`)
}
