import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { ADMIN, ALICE, sessionFor } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())

const C = '/edge/client/v1'
const M = '/edge/management/v1'
const called = (method: string) => gateway.fakes.called(method)
const whoami = (token = ALICE) => gateway.request(`${C}/current-identity`, { token })
const services = (query = '') => gateway.request(`${C}/services${query}`, { token: ALICE })
/** Waits until the change has arrived. */
const arrived = async (changed: () => Promise<boolean>) => {
  while (!(await changed())) await new Promise((resolve) => setImmediate(resolve))
}

beforeEach(async () => {
  await whoami()
  await services()
})

test('the current identity is loaded once', async () => {
  const before = called('identity.entities.get')
  await whoami()
  await whoami()
  expect(called('identity.entities.get')).toBe(before)
})

test.each([
  ['the identity changes', 'identity', { kind: 'identities', id: 'i-2222', json: Buffer.from('{}') }],
  [
    'one of its authenticators does',
    'identity',
    { kind: 'authenticators', id: 'a1', json: Buffer.from('{"identityId":"i-2222"}') },
  ],
  ['an auth policy does', 'identity', { kind: 'auth-policies', id: 'default' }],
  [
    'an enrollment for it is made',
    'pki',
    { kind: 'enrollments', id: 'e9', json: Buffer.from('{"identityId":"i-2222"}') },
  ],
] as const)('it is asked again when %s', async (_what, schema, change) => {
  const before = called('identity.entities.get')
  gateway.fakes.change(schema, [change])
  await arrived(async () => {
    await whoami()
    return called('identity.entities.get') > before
  })
})

test('the deletion of an enrollment, which names no identity, drops the answer that shows it', async () => {
  const shown = { id: 'i-2222', _links: {}, enrollment: { ott: { id: 'e1', token: 't' } } }
  gateway.fakes.instead.set('identity.entities.get', async () => ({
    json: Buffer.from(JSON.stringify(shown)),
  }))
  gateway.fakes.change('identity', [{ kind: 'identities', id: 'i-2222' }])
  await arrived(async () => (await whoami()).text.includes('"e1"'))
  gateway.fakes.instead.delete('identity.entities.get')
  gateway.fakes.change('pki', [{ kind: 'enrollments', id: 'e1' }])
  await arrived(async () => !(await whoami()).text.includes('"e1"'))
})

test('a session that was ended elsewhere is refused', async () => {
  const session = gateway.fakes.sessions.get(ADMIN)
  await whoami(ADMIN)
  gateway.fakes.sessions.delete(ADMIN)
  expect((await whoami(ADMIN)).status).toBe(200) // no change has arrived yet
  gateway.fakes.change('identity', [{ kind: 'api-sessions', id: 's-1111' }])
  await arrived(async () => (await whoami(ADMIN)).status === 401)
  if (session) gateway.fakes.sessions.set(ADMIN, session)
})

test('a session that was ended elsewhere is refused, though a change beside it cannot be read', async () => {
  const session = gateway.fakes.sessions.get(ADMIN)
  await whoami(ADMIN)
  gateway.fakes.sessions.delete(ADMIN)
  gateway.fakes.change('identity', [
    { kind: 'authenticators', id: 'a1', json: Buffer.from('no JSON') },
    { kind: 'api-sessions', id: 's-1111' },
  ])
  await arrived(async () => (await whoami(ADMIN)).status === 401)
  if (session) gateway.fakes.sessions.set(ADMIN, session)
})

test('a logout is over at once', async () => {
  await whoami(ADMIN)
  const session = gateway.fakes.sessions.get(ADMIN)
  gateway.fakes.sessions.delete(ADMIN)
  const { status, json } = await gateway.request(`${M}/current-api-session`, {
    method: 'DELETE',
    token: ADMIN,
  })
  expect([status, json]).toEqual([200, { data: {}, meta: {} }])
  expect((await whoami(ADMIN)).status).toBe(401)
  if (session) gateway.fakes.sessions.set(ADMIN, session)
})

test('a list of services is read once for the same view', async () => {
  const before = called('policy.entities.list')
  await services()
  await services()
  expect(called('policy.entities.list')).toBe(before)
  await services('?limit=3') // another page is another answer
  expect(called('policy.entities.list')).toBe(before + 1)
})

test('identities with the same view share it', async () => {
  const { sessions } = gateway.fakes
  const bob = '44444444-4444-4444-8444-444444444444'
  const alice = sessions.get(ALICE)
  if (alice) sessions.set(bob, { ...alice, id: 's-bob', identityId: 'i-bob', token: bob })
  const before = called('policy.entities.list')
  await gateway.request(`${C}/services`, { token: bob })
  expect(called('policy.entities.list')).toBe(before)
})

test('another view is read anew, as soon as policy says so', async () => {
  const before = called('policy.entities.list')
  gateway.fakes.contentKey = 'k2'
  gateway.fakes.headersChanged(['i-2222'])
  await arrived(async () => {
    await services()
    return called('policy.entities.list') > before
  })
})

test('a view that changes while its rows are read is not kept under its old name', async () => {
  gateway.fakes.instead.set('policy.entities.list', async () => {
    gateway.fakes.headersChanged(['i-2222'])
    const asked = called('policy.getHeader')
    await arrived(async () => {
      await gateway.request(`${C}/current-api-session/service-updates`, { token: ALICE })
      return called('policy.getHeader') > asked
    })
    return {
      rows: Buffer.from('["outdated"]'),
      total: 1,
      limit: '10',
      offset: 0,
      next: Buffer.alloc(0),
      contentKey: gateway.fakes.contentKey,
    }
  })
  expect((await services('?limit=4')).text).toContain('outdated')
  gateway.fakes.instead.delete('policy.entities.list')
  expect((await services('?limit=4')).text).not.toContain('outdated')
})

test('nor is one of which the rows tell it first', async () => {
  const page = { total: 1, limit: '10', offset: 0, next: Buffer.alloc(0) }
  gateway.fakes.instead.set('policy.entities.list', async () => ({
    ...page,
    rows: Buffer.from('["newer"]'),
    contentKey: 'another',
  }))
  expect((await services('?limit=5')).text).toContain('newer')
  gateway.fakes.instead.delete('policy.entities.list')
  expect((await services('?limit=5')).text).not.toContain('newer')
})

test('a list with the config types of the session is not taken for one without any', async () => {
  const carol = '55555555-5555-4555-8555-555555555555'
  gateway.fakes.sessions.set(carol, sessionFor(carol, { configTypes: ['all'] }))
  const c = (query: string) => gateway.request(`${C}/services${query}`, { token: carol })
  await c('?limit=6&policyType=dial')
  const before = called('policy.entities.list')
  await c('?limit=6&policyType=dial&configTypes=')
  expect(called('policy.entities.list')).toBe(before + 1)
})

test('a view without a name is never kept', async () => {
  gateway.fakes.contentKey = ''
  gateway.fakes.headersChanged(['i-2222'])
  const before = called('policy.entities.list')
  await arrived(async () => {
    await services()
    await services()
    return called('policy.entities.list') >= before + 2
  })
})

test('a session is created with the position at which its API session exists', async () => {
  gateway.fakes.instead.set('sessions.createSession', async () => ({ json: Buffer.from('{}') }))
  await whoami()
  const position = gateway.fakes.change('identity', [{ kind: 'identities', id: 'somebody else' }])
  await arrived(async () => {
    await gateway.request(`${C}/sessions`, { method: 'POST', token: ALICE, body: { serviceId: 's' } })
    const call = gateway.fakes.calls.findLast(({ method }) => method === 'sessions.createSession')
    const { apiSessionAt } = (call?.request ?? {}) as { apiSessionAt?: { number: number } }
    return apiSessionAt?.number === position.number
  })
})

test('calls after a write carry its position', async () => {
  await gateway.request(`${M}/services`, {
    method: 'POST',
    token: ADMIN,
    body: { name: 'a', encryptionRequired: true },
  })
  await gateway.request(`${M}/services/x`, { token: ADMIN })
  const call = gateway.fakes.calls.findLast(({ method }) => method === 'policy.entities.get')
  expect(call?.context.positions).toEqual({ policy: { timeline: 't1', number: 5 } })
})
