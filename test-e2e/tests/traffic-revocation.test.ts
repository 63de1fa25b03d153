import { afterAll, beforeAll, expect, test } from 'vitest'
import { keyAndRequest, logIn, type Member } from '../member.js'
import type { TestRouter } from '../router/router.js'
import { totp } from '../totp.js'
import { openSession, type Session, startTraffic, type Traffic, until } from '../traffic.js'

let traffic: Traffic
/** Each is connected to one replica only. */
let routers: readonly TestRouter[]
beforeAll(async () => {
  traffic = await startTraffic({ sessions: 2, identities: 2 })
  routers = await Promise.all(
    traffic.network.controllers.map((address, n) =>
      traffic.router(`router-${n}`, { controllers: [address] }),
    ),
  )
})
afterAll(() => traffic[Symbol.asyncDispose]())

const everywhere = (condition: (router: TestRouter) => boolean): Promise<boolean> =>
  until(() => routers.length === 2 && routers.every(condition))
const hasApiSession =
  ({ apiSessionToken }: Member) =>
  ({ apiSessions }: TestRouter): boolean =>
    apiSessions.get(apiSessionToken) !== undefined

let count = 0
/** A member that hosts and dials a service. */
async function hosting() {
  const name = `wiki-${++count}`
  const serviceId = await traffic.service(name)
  const member = await traffic.member(name, 'host', 'client')
  const session = await openSession(member, serviceId, 'Dial')
  await everywhere(hasApiSession(member))
  return { name, serviceId, member, session }
}
type Hosting = Awaited<ReturnType<typeof hosting>>

const sessionIsGone =
  ({ token }: Session) =>
  ({ sessions }: TestRouter): boolean =>
    sessions.isRemoved(token)

test('routers of all replicas know an API session when its login has been answered', async () => {
  const { certificate, id } = await traffic.member('early')
  for (let attempt = 0; attempt < 5; attempt++) {
    const member = await logIn(traffic.server, id, certificate)
    await everywhere(hasApiSession(member))
    const [router] = routers
    expect(router?.apiSessions.get(member.apiSessionToken)?.certFingerprints).toHaveLength(1)
  }
})

test('a certificate of an API session is a fingerprint of it', async () => {
  const member = await traffic.member('certified')
  const { csr } = await keyAndRequest()
  await member.request('POST', '/current-api-session/certificates', { csr })
  const prints = ({ apiSessions }: TestRouter) =>
    apiSessions.get(member.apiSessionToken)?.certFingerprints.length === 2
  await everywhere(prints)
})

const request = (method: string, path: (hosting: Hosting) => string, body?: object) => (hosting: Hosting) =>
  traffic.admin.request(method, path(hosting), body)

test.each([
  ['it is deleted', request('DELETE', ({ session }) => `/sessions/${session.id}`)],
  ['its service is deleted', request('DELETE', ({ serviceId }) => `/services/${serviceId}`)],
  [
    'a policy grants it no longer',
    request('PATCH', ({ member }) => `/identities/${member.id}`, { roleAttributes: ['host'] }),
  ],
])('a session ends at the routers of all replicas when %s', async (_when, revoke) => {
  const one = await hosting()
  await revoke(one)
  await everywhere(sessionIsGone(one.session))
  expect(routers.every(hasApiSession(one.member))).toBe(true)
})

test('a session ends at the routers of all replicas when its endpoint fails a posture check', async () => {
  const { admin } = traffic
  const check = { name: 'domain', typeId: 'DOMAIN', domains: ['a.example'] }
  await admin.create('posture-checks', { ...check, roleAttributes: ['checked'] })
  const serviceId = await admin.create('services', { name: 'guarded', encryptionRequired: false })
  const member = await traffic.member('guarded')
  await admin.create('service-policies', {
    name: 'guarded',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: [`@${member.id}`],
    serviceRoles: [`@${serviceId}`],
    postureCheckRoles: ['#checked'],
  })
  const respond = (domain: string) =>
    member.request('POST', '/posture-response', { id: 'any', typeId: 'DOMAIN', domain })
  await respond('a.example')
  const session = await openSession(member, serviceId, 'Dial')
  await respond('b.example')
  await everywhere(sessionIsGone(session))
})

test('an API session is gone from all routers when the second factor that its policy demands is removed', async () => {
  const { admin } = traffic
  const member = await traffic.member('protected')
  const factorOf = async () => {
    await member.request('POST', '/current-identity/mfa')
    const { provisioningUrl } = await member.request<{ provisioningUrl: string }>(
      'GET',
      '/current-identity/mfa',
    )
    await member.request('POST', '/current-identity/mfa/verify', { code: totp(provisioningUrl) })
  }
  await factorOf()
  const { primary } = await admin.request<{ primary: object }>('GET', '/auth-policies/default')
  const secondary = { requireTotp: true, requireExtJwtSigner: null }
  const authPolicyId = await admin.create('auth-policies', { name: 'protected', primary, secondary })
  await admin.request('PATCH', `/identities/${member.id}`, { authPolicyId })
  await everywhere(hasApiSession(member))
  expect((await member.call('GET', '/services')).status).toBe(200)
  await admin.request('DELETE', `/identities/${member.id}/mfa`)
  expect((await member.call('GET', '/services')).status).toBe(401)
  await everywhere((router) => !hasApiSession(member)(router))
  await factorOf()
  expect((await member.call('GET', '/services')).status).toBe(200)
  await everywhere(hasApiSession(member))
})

test.each([
  ['it logs out', ({ member }: Hosting) => member.request('DELETE', '/current-api-session')],
  [
    'its identity is disabled',
    request('POST', ({ member }) => `/identities/${member.id}/disable`, { durationMinutes: 0 }),
  ],
  ['its identity is deleted', request('DELETE', ({ member }) => `/identities/${member.id}`)],
])('an API session and its sessions end at the routers of all replicas when %s', async (_when, revoke) => {
  const one = await hosting()
  await revoke(one)
  await everywhere((router) => !hasApiSession(one.member)(router))
  await everywhere(sessionIsGone(one.session))
})
