import type { Message } from '@overlay/channel'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { accessTokens } from '../access-tokens.js'
import type { Admin } from '../admin.js'
import { openClient, type Server } from '../client.js'
import { keyAndRequest, logIn, type Member } from '../member.js'
import { type Network, networkAdmin, startNetwork } from '../network.js'
import { enrollRouter } from '../router/identity.js'
import { startRouter, type TestRouter } from '../router/router.js'
import { until } from '../traffic.js'

let network: Network
let admin: Admin
let server: Server
const started: AsyncDisposable[] = []
beforeAll(async () => {
  network = await startNetwork({ sessions: 2, policies: 2 })
  admin = await network.admin()
  server = { addresses: [network.address], caPem: network.caPem }
})
afterAll(async () => {
  for (const one of started) await one[Symbol.asyncDispose]()
  await network[Symbol.asyncDispose]()
})

/** A router that is connected to all replicas and reads everything that it receives. */
async function spy(name: string, roleAttributes: string[] = []) {
  const received: Buffer[] = []
  const observe = ({ body }: Message): void => void received.push(body)
  const identity = await enrollRouter(admin, server, { name, roleAttributes })
  const router = await startRouter({ identity, controllers: network.controllers, observe })
  started.push(router)
  await until(
    async () =>
      (await admin.request<{ syncStatus: string }>('GET', `/edge-routers/${router.id}`)).syncStatus ===
      'SYNC_DONE',
  )
  return { router, id: router.id, hasSeen: (token: string) => received.some((body) => body.includes(token)) }
}
const knows = ({ apiSessions }: TestRouter, { apiSessionToken }: Member): boolean =>
  apiSessions.get(apiSessionToken) !== undefined

const grant = (name: string, identityRoles: string[], edgeRouterRoles: string[]): Promise<string> =>
  admin.create('edge-router-policies', { name, semantic: 'AnyOf', identityRoles, edgeRouterRoles })

async function byPassword(api: 'client' | 'management', credentials: object) {
  const client = openClient(server, `/edge/${api}/v1`)
  const { token } = await client.request<{ token: string }>(
    'POST',
    '/authenticate?method=password',
    credentials,
  )
  client.use(token)
  return { ...client, token }
}

test('a router in no policy receives no token, and with a policy those of its identities only', async () => {
  const { router, id, hasSeen } = await spy('outsider')
  const alice = await admin.enroll({ name: 'alice' })
  const bob = await admin.enroll({ name: 'bob' })
  const secrets = [
    (await byPassword('management', networkAdmin)).token,
    (await accessTokens(network.gateways, network.caPem, networkAdmin)).access,
    (await accessTokens(network.gateways, network.caPem, networkAdmin)).access,
    bob.apiSessionToken,
  ]
  expect(router.apiSessions.tokens().filter((token) => token === alice.apiSessionToken)).toEqual([])
  expect(hasSeen(alice.apiSessionToken)).toBe(false)

  await grant('outsider', [`@${alice.id}`], [`@${id}`])
  await until(() => knows(router, alice))
  const again = await logIn(server, alice.id, alice.certificate)
  await until(() => knows(router, again))
  for (const secret of secrets) expect(hasSeen(secret)).toBe(false)
})

test('an administrator to whom a policy grants the router is not known to it before a certificate', async () => {
  const { router, id, hasSeen } = await spy('of-the-administrator')
  const credentials = { username: 'root', password: 'correct horse' }
  const root = await admin.create('identities', { name: 'root', type: 'User', isAdmin: true })
  await admin.create('authenticators', { method: 'updb', identityId: root, ...credentials })
  const carol = await admin.enroll({ name: 'carol' })
  await grant('of-the-administrator', [`@${root}`, `@${carol.id}`], [`@${id}`])
  await until(() => knows(router, carol))
  const session = await byPassword('client', credentials)
  const { access } = await accessTokens(network.gateways, network.caPem, credentials)
  await until(async () => knows(router, await logIn(server, carol.id, carol.certificate)))
  for (const token of [session.token, access]) expect(hasSeen(token)).toBe(false)

  const { csr } = await keyAndRequest()
  await session.request('POST', '/current-api-session/certificates', { csr })
  await until(() => router.apiSessions.get(session.token)?.certFingerprints.length === 1)
  expect(hasSeen(access)).toBe(false)
})

interface Granted {
  readonly name: string
  readonly member: Member
  readonly router: string
  readonly policy: string
}
const patch =
  (path: (granted: Granted) => string, body: (name: string) => object) =>
  (granted: Granted): Promise<unknown> =>
    admin.request('PATCH', path(granted), body(granted.name))

test.each([
  [
    'the policy names no router',
    patch(
      ({ policy }) => `/edge-router-policies/${policy}`,
      () => ({ edgeRouterRoles: ['#none'] }),
    ),
    patch(
      ({ policy }) => `/edge-router-policies/${policy}`,
      (name) => ({ edgeRouterRoles: [`#${name}`] }),
    ),
  ],
  [
    'the policy is deleted',
    ({ policy }: Granted) => admin.request('DELETE', `/edge-router-policies/${policy}`),
    ({ name }: Granted) => grant(name, [`#${name}`], [`#${name}`]),
  ],
  [
    'the identity has another attribute',
    patch(
      ({ member }) => `/identities/${member.id}`,
      () => ({ roleAttributes: ['other'] }),
    ),
    patch(
      ({ member }) => `/identities/${member.id}`,
      (name) => ({ roleAttributes: [name] }),
    ),
  ],
  [
    'the router has another attribute',
    patch(
      ({ router }) => `/edge-routers/${router}`,
      () => ({ roleAttributes: ['other'] }),
    ),
    patch(
      ({ router }) => `/edge-routers/${router}`,
      (name) => ({ roleAttributes: [name] }),
    ),
  ],
])(
  'a router loses the API sessions of an identity when %s, and gets them again',
  async (when, take, give) => {
    const name = when.replaceAll(' ', '-')
    const { router, id, hasSeen } = await spy(name, [name])
    const policy = await grant(name, [`#${name}`], [`#${name}`])
    const member = await admin.enroll({ name, roleAttributes: [name] })
    await until(() => knows(router, member))

    await take({ name, member, router: id, policy })
    await until(() => !knows(router, member))
    const meanwhile = await logIn(server, member.id, member.certificate)
    expect(hasSeen(meanwhile.apiSessionToken)).toBe(false)

    await give({ name, member, router: id, policy })
    await until(() => knows(router, member) && knows(router, meanwhile))
  },
)

test('a router knows an API session when the login is answered, also by a policy or an attribute of just before', async () => {
  const { router, id } = await spy('at-once', ['at-once'])
  const late = await admin.enroll({ name: 'late' })
  const policy = await grant('at-once', [`@${late.id}`], [`@${id}`])
  for (let attempt = 0; attempt < 3; attempt++) {
    const one = await logIn(server, late.id, late.certificate)
    await until(() => knows(router, one))
    await admin.request('PATCH', `/edge-router-policies/${policy}`, { identityRoles: ['#early'] })
    await admin.request('PATCH', `/identities/${late.id}`, { roleAttributes: ['early'] })
    const two = await logIn(server, late.id, late.certificate)
    await until(() => knows(router, two))
    await admin.request('PATCH', `/identities/${late.id}`, { roleAttributes: [] })
    await until(() => !knows(router, two))
    await admin.request('PATCH', `/edge-router-policies/${policy}`, { identityRoles: [`@${late.id}`] })
  }
})
