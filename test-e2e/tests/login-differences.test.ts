import 'reflect-metadata'
import { webcrypto, X509Certificate } from 'node:crypto'
import { X509CertificateGenerator } from '@peculiar/x509'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openClient } from '../client.js'
import { type Fixture, filter, inAnHour, invalid, password, startFixture } from '../fixture.js'

// The promises of docs/differences.md about logins, enrollments and dials.

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture({ shared: true })
})
afterAll(() => fixture[Symbol.asyncDispose]())

const thisYear = expect.stringMatching(`^${new Date().getUTCFullYear()}-`)

test('a taken user name is refused in every operation of an admin', async () => {
  const { createUser, refusalOf, sampleOf, statusOfLogin } = fixture
  const taken = { username: 'admin' }
  const body = { ...(await sampleOf('authenticators')), ...taken }
  expect(await refusalOf('POST', '/authenticators', body)).toEqual(invalid('username'))
  const { authenticatorId, username } = await createUser()
  const path = `/authenticators/${authenticatorId}`
  expect(await refusalOf('PUT', path, { password, ...taken })).toEqual(invalid('username'))
  expect(await refusalOf('PATCH', path, taken)).toEqual(invalid('username'))
  expect(await statusOfLogin(username)).toBe(200)
})

test('an authenticator has its own dates and tags', async () => {
  const { admin, get, createUser } = fixture
  const path = `/authenticators/${(await createUser()).authenticatorId}`
  await admin.request('PATCH', path, { tags: { a: 'b' } })
  expect(await get(path)).toMatchObject({ tags: { a: 'b' }, createdAt: thisYear, updatedAt: thisYear })
})

async function selfSigned(): Promise<string> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const options = { name: 'CN=self', keys, signingAlgorithm: algorithm }
  return (await X509CertificateGenerator.createSelfSigned(options, webcrypto)).toString('pem')
}

test('a certificate of no authority, or of another identity, is bad input', async () => {
  const { admin, createSample, newName, refusalOf } = fixture
  const member = await admin.enroll({ name: newName() })
  const body = { method: 'cert', identityId: await createSample('identities') }
  const leaf = new X509Certificate(member.certificate.cert).toString()
  for (const certPem of [await selfSigned(), leaf]) {
    const refusal = await refusalOf('POST', '/authenticators', { ...body, certPem })
    expect(refusal.slice(0, 2)).toEqual([400, 'COULD_NOT_VALIDATE'])
  }
})

test('a change with a wrong current password is refused without details', async () => {
  const { logIn, createUser, server, statusOfLogin } = fixture
  const { username } = await createUser()
  using self = openClient(server, '/edge/client/v1')
  self.use(((await logIn(username)).body.data as { token: string }).token)
  const [own] = await self.request<{ id: string }[]>('GET', '/current-identity/authenticators')
  expect(own).toMatchObject({ username, createdAt: thisYear })
  const body = { currentPassword: 'mistaken', password: 'replacement' }
  const refused = await self.call('PATCH', `/current-identity/authenticators/${own?.id}`, body)
  expect(refused.status).toBe(401)
  expect(JSON.stringify(refused.body)).not.toMatch(/mistaken|replacement|correct horse/)
  expect(await statusOfLogin(username)).toBe(200)
})

test('only failures count, a success resets them, too many lock, and enabling resets them', async () => {
  const { admin, get, makeAuthPolicy, createUser, statusOfLogin } = fixture
  const { id, username } = await createUser({ authPolicyId: await makeAuthPolicy({ maxAttempts: 2 }) })
  const statuses = async (...secrets: string[]) => {
    const all: number[] = []
    for (const secret of secrets) all.push(await statusOfLogin(username, secret))
    return all
  }
  expect(await statuses(password, password, password)).toEqual([200, 200, 200])
  expect(await statuses('wrong', password, 'wrong', password)).toEqual([401, 200, 401, 200])
  expect(await statuses('wrong', 'wrong', password)).toEqual([401, 401, 401])
  expect(await get(`/identities/${id}`)).toMatchObject({ disabled: true })
  await admin.request('POST', `/identities/${id}/enable`)
  expect(await statuses('wrong', password)).toEqual([401, 200])
})

test('the answer of disabling has an envelope', async () => {
  const { admin, createUser, statusOfLogin } = fixture
  const { id, username } = await createUser()
  const answer = await admin.call('POST', `/identities/${id}/disable`, { durationMinutes: 5 })
  expect(answer).toEqual({ status: 200, body: { data: {}, meta: {} }, type: 'application/json' })
  expect(await statusOfLogin(username)).toBe(401)
})

test('the default admin can neither be disabled nor lose its last authenticator', async () => {
  const { admin, list, refusalOf, statusOfLogin } = fixture
  const [self] = await list(`/identities?${filter('isDefaultAdmin = true')}`)
  const [own] = await list('/current-identity/authenticators')
  const disable = await refusalOf('POST', `/identities/${self?.id}/disable`, { durationMinutes: 1 })
  const remove = await refusalOf('DELETE', `/authenticators/${own?.id}`)
  expect([disable[0], remove[0]]).toEqual([400, 400])
  expect(await admin.request('GET', '/current-identity')).toMatchObject({ disabled: false })
  expect(await statusOfLogin('admin')).toBe(200)
})

test('the answer of a login names outstanding steps', async () => {
  const { logIn, makeAuthPolicy, createUser } = fixture
  const two = await createUser({
    authPolicyId: await makeAuthPolicy({}, { secondary: { requireTotp: true } }),
  })
  const [one, other] = [await logIn((await createUser()).username), await logIn(two.username)]
  expect(one.body.data).toMatchObject({ authQueries: [] })
  expect(other.body.data).toMatchObject({ authQueries: [{ typeId: 'MFA' }] })
})

test('a session that must present a token of a signer receives its address, also when it changes', async () => {
  const { admin, createSample, createUser, logIn, makeAuthPolicy, server } = fixture
  const [before, after] = ['https://one.example/auth?x=1', 'https://two.example']
  const signer = await createSample('external-jwt-signers', { externalAuthUrl: before })
  const authPolicyId = await makeAuthPolicy(
    {},
    { secondary: { requireTotp: false, requireExtJwtSigner: signer } },
  )
  const { username } = await createUser({ authPolicyId })
  const queries = (httpUrl: string) => [{ typeId: 'EXT-JWT', provider: 'url', httpUrl }]
  const { body } = await logIn(username)
  const session = body.data as { authQueries: unknown; token: string }
  expect(session.authQueries).toEqual(queries(before))
  using client = openClient(server, '/edge/client/v1')
  client.use(session.token)
  const shown = async () =>
    (await client.request<{ authQueries: unknown }>('GET', '/current-api-session')).authQueries
  expect(await shown()).toEqual(queries(before))
  await admin.request('PATCH', `/external-jwt-signers/${signer}`, { externalAuthUrl: after })
  expect(await shown()).toEqual(queries(after))
})

test('a refresh creates another token and invalidates the previous one', async () => {
  const { admin, get, createSample, refusalOf, anonymous } = fixture
  const id = await createSample('enrollments')
  const path = `/enrollments/${id}`
  const { token, ...before } = await get(path)
  expect(before).toMatchObject({ tags: {}, createdAt: thisYear })
  const answer = await admin.request('POST', `${path}/refresh`, { expiresAt: inAnHour() })
  expect(answer).toEqual({ _links: { self: { href: `.${path}` } }, id })
  expect((await get(path)).token).not.toBe(token)
  const redeemed = await refusalOf('POST', `/enroll?method=ott&token=${token}`, 'a request', anonymous)
  expect(redeemed).toEqual([400, 'INVALID_ENROLLMENT_TOKEN'])
})

test('the enrollment of a router has its creation time and cannot be refreshed', async () => {
  const { get, list, createSample, refusalOf } = fixture
  const router = await get(`/edge-routers/${await createSample('edge-routers')}`)
  expect(router).toMatchObject({ enrollmentCreatedAt: thisYear })
  const [enrollment] = await list(`/enrollments?${filter(`token = "${router.enrollmentToken}"`)}`)
  const path = `/enrollments/${enrollment?.id}/refresh`
  expect(await refusalOf('POST', path, { expiresAt: inAnHour() })).toEqual(invalid('id'))
})

test.each([
  ['no password', {}, 'COULD_NOT_VALIDATE'],
  ['a short one', { password: 'abcd' }, 'COULD_NOT_VALIDATE'],
  ['one of another type', { password: 12345 }, 'COULD_NOT_PARSE_BODY'],
])('an enrollment with %s is refused and can be repeated', async (_what, body, code) => {
  const { get, createSample, newName, refusalOf, statusOfLogin, anonymous } = fixture
  const username = `user-${newName()}`
  const id = await createSample('identities', { enrollment: { updb: username } })
  const { enrollment } = (await get(`/identities/${id}`)) as { enrollment?: { updb: { token: string } } }
  const path = `/enroll?method=updb&token=${enrollment?.updb.token}`
  expect((await refusalOf('POST', path, body, anonymous)).slice(0, 2)).toEqual([400, code])
  await anonymous.request('POST', path, { password })
  expect(await statusOfLogin(username)).toBe(200)
})

test('a second create of a session repeats all checks and returns the first session', async () => {
  const { admin, get, createSample, newName } = fixture
  const attribute = newName()
  const own = [`#${attribute}`]
  await createSample('edge-routers')
  const serviceId = await createSample('services', { roleAttributes: own.map((role) => role.slice(1)) })
  await createSample('edge-router-policies', { identityRoles: own, edgeRouterRoles: ['#all'] })
  const reach = { serviceRoles: own, edgeRouterRoles: ['#all'] }
  const reachId = await createSample('service-edge-router-policies', reach)
  const permit = { type: 'Dial', identityRoles: own, serviceRoles: own }
  const permitId = await createSample('service-policies', permit)
  const member = await admin.enroll({ name: newName(), roleAttributes: [attribute] })
  const dial = () => member.call('POST', '/sessions', { serviceId, type: 'Dial' })

  const [first, second] = [await dial(), await dial()]
  const { id } = first.body.data as { id: string }
  expect([first.status, second]).toMatchObject([201, { status: 201, body: { data: { id } } }])
  expect(await get(`/sessions/${id}`)).toMatchObject({ servicePolicies: [{ id: permitId }] })
  await admin.request('PATCH', `/service-edge-router-policies/${reachId}`, {
    serviceRoles: ['#nobody-has-this'],
  })
  expect((await dial()).body.error).toMatchObject({ code: 'NO_EDGE_ROUTERS_AVAILABLE' })
})
