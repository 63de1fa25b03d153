import 'reflect-metadata'
import { webcrypto, X509Certificate } from 'node:crypto'
import { X509CertificateGenerator } from '@peculiar/x509'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openClient } from '../client.js'
import { type Fixture, filter, inAnHour, invalid, password, startFixture } from '../fixture.js'

// What docs/differences.md promises of logging in, enrolling and dialing.

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())

const thisYear = expect.stringMatching(`^${new Date().getUTCFullYear()}-`)

test.each([
  ['a taken name', { username: 'admin' }, 'username'],
  ['a short name', { username: 'abc' }, 'username'],
  ['a long name', { username: 'x'.repeat(101) }, 'username'],
  ['a short password', { password: 'abcd' }, 'password'],
  ['a long password', { password: 'x'.repeat(101) }, 'password'],
])('%s is refused wherever an admin sets it', async (_what, more, field) => {
  const { person, refusalOf, sampleOf, statusOfLogin } = fixture
  const body = { ...(await sampleOf('authenticators')), ...more }
  expect(await refusalOf('POST', '/authenticators', body)).toEqual(invalid(field))
  const { authenticatorId, username } = await person()
  const path = `/authenticators/${authenticatorId}`
  expect(await refusalOf('PUT', path, { username, password, ...more })).toEqual(invalid(field))
  expect(await refusalOf('PATCH', path, more)).toEqual(invalid(field))
  expect(await statusOfLogin(username)).toBe(200)
})

test('a policy says how long a password is and what is in it', async () => {
  const { admin, make, makeAuthPolicy, newName, refusalOf } = fixture
  const authPolicyId = await makeAuthPolicy({ minPasswordLength: 12, requireNumberChar: true })
  const identityId = await make('identities', { authPolicyId })
  const body = { method: 'updb', identityId, username: `user-${newName()}` }
  for (const weak of ['short 1', 'long but without'])
    expect(await refusalOf('POST', '/authenticators', { ...body, password: weak })).toEqual(
      invalid('password'),
    )
  await admin.create('authenticators', { ...body, password: 'long and with 1' })
})

test('an authenticator has its own dates and tags', async () => {
  const { admin, get, person } = fixture
  const path = `/authenticators/${(await person()).authenticatorId}`
  await admin.ask('PATCH', path, { tags: { a: 'b' } })
  expect(await get(path)).toMatchObject({ tags: { a: 'b' }, createdAt: thisYear, updatedAt: thisYear })
})

async function selfSigned(): Promise<string> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const made = { name: 'CN=self', keys, signingAlgorithm: algorithm }
  return (await X509CertificateGenerator.createSelfSigned(made, webcrypto)).toString('pem')
}

test('a certificate that verifies nowhere, or is of somebody else, is bad input', async () => {
  const { admin, make, newName, refusalOf } = fixture
  const member = await admin.enroll({ name: newName() })
  const body = { method: 'cert', identityId: await make('identities') }
  const leaf = new X509Certificate(member.certificate.cert).toString()
  for (const certPem of [await selfSigned(), leaf]) {
    const refusal = await refusalOf('POST', '/authenticators', { ...body, certPem })
    expect(refusal.slice(0, 2)).toEqual([400, 'COULD_NOT_VALIDATE'])
  }
})

test('who is wrong about the own password is not told any', async () => {
  const { logIn, person, server, statusOfLogin } = fixture
  const { username } = await person()
  using self = openClient(server, '/edge/client/v1')
  self.use(((await logIn(username)).body.data as { token: string }).token)
  const [own] = await self.ask<{ id: string }[]>('GET', '/current-identity/authenticators')
  expect(own).toMatchObject({ username, createdAt: thisYear })
  const body = { currentPassword: 'mistaken', password: 'replacement' }
  const refused = await self.call('PATCH', `/current-identity/authenticators/${own?.id}`, body)
  expect(refused.status).toBe(401)
  expect(JSON.stringify(refused.body)).not.toMatch(/mistaken|replacement|correct horse/)
  expect(await statusOfLogin(username)).toBe(200)
})

test('only failures count; a success forgets them, too many lock, and who is enabled starts anew', async () => {
  const { admin, get, makeAuthPolicy, person, statusOfLogin } = fixture
  const { id, username } = await person({ authPolicyId: await makeAuthPolicy({ maxAttempts: 2 }) })
  const statuses = async (...secrets: string[]) => {
    const all: number[] = []
    for (const secret of secrets) all.push(await statusOfLogin(username, secret))
    return all
  }
  expect(await statuses(password, password, password)).toEqual([200, 200, 200])
  expect(await statuses('wrong', password, 'wrong', password)).toEqual([401, 200, 401, 200])
  expect(await statuses('wrong', 'wrong', password)).toEqual([401, 401, 401])
  expect(await get(`/identities/${id}`)).toMatchObject({ disabled: true })
  await admin.ask('POST', `/identities/${id}/enable`)
  expect(await statuses('wrong', password)).toEqual([401, 200])
})

test('disabling is answered in the envelope', async () => {
  const { admin, person, statusOfLogin } = fixture
  const { id, username } = await person()
  const answer = await admin.call('POST', `/identities/${id}/disable`, { durationMinutes: 5 })
  expect(answer).toEqual({ status: 200, body: { data: {}, meta: {} } })
  expect(await statusOfLogin(username)).toBe(401)
})

test('the default admin can be neither disabled nor left without a way in', async () => {
  const { admin, list, refusalOf, statusOfLogin } = fixture
  const [self] = await list(`/identities?${filter('isDefaultAdmin = true')}`)
  const [own] = await list('/current-identity/authenticators')
  const disable = await refusalOf('POST', `/identities/${self?.id}/disable`, { durationMinutes: 1 })
  const remove = await refusalOf('DELETE', `/authenticators/${own?.id}`)
  expect([disable[0], remove[0]]).toEqual([400, 400])
  expect(await admin.ask('GET', '/current-identity')).toMatchObject({ disabled: false })
  expect(await statusOfLogin('admin')).toBe(200)
})

test('the answer to a login says what is still outstanding', async () => {
  const { logIn, makeAuthPolicy, person } = fixture
  const two = await person({ authPolicyId: await makeAuthPolicy({}, { secondary: { requireTotp: true } }) })
  const [one, other] = [await logIn((await person()).username), await logIn(two.username)]
  expect(one.body.data).toMatchObject({ authQueries: [] })
  expect(other.body.data).toMatchObject({ authQueries: [{ typeId: 'MFA' }] })
})

test('a refresh makes another token, and the one before is dead', async () => {
  const { admin, get, make, refusalOf, stranger } = fixture
  const id = await make('enrollments')
  const path = `/enrollments/${id}`
  const { token, ...before } = await get(path)
  expect(before).toMatchObject({ tags: {}, createdAt: thisYear })
  const answer = await admin.ask('POST', `${path}/refresh`, { expiresAt: inAnHour() })
  expect(answer).toEqual({ _links: { self: { href: `.${path}` } }, id })
  expect((await get(path)).token).not.toBe(token)
  const redeemed = await refusalOf('POST', `/enroll?method=ott&token=${token}`, 'a request', stranger)
  expect(redeemed).toEqual([400, 'INVALID_ENROLLMENT_TOKEN'])
})

test('the enrollment of a router says when it was made; it is not refreshed', async () => {
  const { get, list, make, refusalOf } = fixture
  const router = await get(`/edge-routers/${await make('edge-routers')}`)
  expect(router).toMatchObject({ enrollmentCreatedAt: thisYear })
  const [enrollment] = await list(`/enrollments?${filter(`token = "${router.enrollmentToken}"`)}`)
  const path = `/enrollments/${enrollment?.id}/refresh`
  expect(await refusalOf('POST', path, { expiresAt: inAnHour() })).toEqual(invalid('id'))
})

test.each([
  ['no password', {}, 'COULD_NOT_VALIDATE'],
  ['a short one', { password: 'abcd' }, 'COULD_NOT_VALIDATE'],
  ['one of another type', { password: 12345 }, 'COULD_NOT_PARSE_BODY'],
])('a name with %s is not enrolled, and may try again', async (_what, body, code) => {
  const { get, make, newName, refusalOf, statusOfLogin, stranger } = fixture
  const username = `user-${newName()}`
  const id = await make('identities', { enrollment: { updb: username } })
  const { enrollment } = (await get(`/identities/${id}`)) as { enrollment?: { updb: { token: string } } }
  const path = `/enroll?method=updb&token=${enrollment?.updb.token}`
  expect((await refusalOf('POST', path, body, stranger)).slice(0, 2)).toEqual([400, code])
  await stranger.ask('POST', path, { password })
  expect(await statusOfLogin(username)).toBe(200)
})

test('a second session for the same service is the first one, after all is checked again', async () => {
  const { admin, get, make, newName } = fixture
  const attribute = newName()
  const own = [`#${attribute}`]
  await make('edge-routers')
  const serviceId = await make('services', { roleAttributes: own.map((role) => role.slice(1)) })
  await make('edge-router-policies', { identityRoles: own, edgeRouterRoles: ['#all'] })
  const reach = { serviceRoles: own, edgeRouterRoles: ['#all'] }
  const reachId = await make('service-edge-router-policies', reach)
  const permit = { type: 'Dial', identityRoles: own, serviceRoles: own }
  const permitId = await make('service-policies', permit)
  const member = await admin.enroll({ name: newName(), roleAttributes: [attribute] })
  const dial = () => member.call('POST', '/sessions', { serviceId, type: 'Dial' })

  const [first, second] = [await dial(), await dial()]
  const { id } = first.body.data as { id: string }
  expect([first.status, second]).toMatchObject([201, { status: 201, body: { data: { id } } }])
  expect(await get(`/sessions/${id}`)).toMatchObject({ servicePolicies: [{ id: permitId }] })
  await admin.ask('PATCH', `/service-edge-router-policies/${reachId}`, { serviceRoles: ['#nobody-has-this'] })
  expect((await dial()).body.error).toMatchObject({ code: 'NO_EDGE_ROUTERS_AVAILABLE' })
})
