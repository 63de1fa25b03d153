import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Fixture, filter, invalid, notFound, startFixture } from '../fixture.js'
import type { Member } from '../member.js'
import { totp } from '../totp.js'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture({ shared: true })
})
afterAll(() => fixture[Symbol.asyncDispose]())

/** A member that may dial a service through a router if it passes a posture check. */
async function createGuarded(check: object, type = 'Dial') {
  const { admin, createSample, newName } = fixture
  const member = await admin.enroll({ name: newName() })
  const checkId = await createSample('posture-checks', check)
  const serviceId = await createSample('services')
  const routerId = await createSample('edge-routers')
  const [identityRoles, serviceRoles, edgeRouterRoles] = [
    [`@${member.id}`],
    [`@${serviceId}`],
    [`@${routerId}`],
  ]
  await createSample('edge-router-policies', { identityRoles, edgeRouterRoles })
  await createSample('service-edge-router-policies', { serviceRoles, edgeRouterRoles })
  const guard = { type, identityRoles, serviceRoles, postureCheckRoles: [`@${checkId}`] }
  const policyId = await createSample('service-policies', guard)
  return { member, checkId, serviceId, policyId }
}

const domain = (name: string) => ({ id: 'any', typeId: 'DOMAIN', domain: name })
const respond = (member: Member, response: object) => member.request('POST', '/posture-response', response)
const dial = (member: Member, serviceId: string) =>
  member.call('POST', '/sessions', { serviceId, type: 'Dial' })
const queriesOf = async (member: Member) =>
  (await member.request<{ postureQueries: { isPassing: boolean }[] }[]>('GET', '/services'))[0]
    ?.postureQueries

test('posture responses take effect immediately, for lists and for sessions', async () => {
  const { member, checkId, serviceId, policyId } = await createGuarded({
    typeId: 'DOMAIN',
    domains: ['a.example'],
  })
  expect(await queriesOf(member)).toMatchObject([{ policyId, isPassing: false }])
  expect(await queriesOf(member)).toMatchObject([{ policyId, isPassing: false }]) // from the gateway's memory
  const refused = await dial(member, serviceId)
  expect(refused.status).toBe(409)
  expect(refused.body.error).toMatchObject({
    code: 'INVALID_POSTURE',
    cause: { data: { [policyId]: [{ id: checkId, typeId: 'DOMAIN', isPassing: false }] } },
  })

  const before = await member.request('GET', '/current-api-session/service-updates')
  expect(await respond(member, domain('A.example'))).toEqual({ services: [] })
  expect(await member.request('GET', '/current-api-session/service-updates')).not.toEqual(before)
  expect(await queriesOf(member)).toMatchObject([{ policyId, isPassing: true }])
  const { status, body } = await dial(member, serviceId)
  expect(status).toBe(201)
  const { id } = body.data as { id: string }
  expect(await fixture.get(`/sessions/${id}`)).toMatchObject({ servicePolicies: [{ id: policyId }] })
})

async function dialGuarded() {
  const { member, checkId, serviceId } = await createGuarded({ typeId: 'DOMAIN', domains: ['a.example'] })
  await respond(member, domain('a.example'))
  const { id } = (await dial(member, serviceId)).body.data as { id: string }
  return { member, checkId, lookUp: () => fixture.refusalOf('GET', `/sessions/${id}`) }
}

test('a session is gone when the response that ends it is answered', async () => {
  const { member, lookUp } = await dialGuarded()
  await respond(member, domain('b.example'))
  expect(await lookUp()).toEqual(notFound)
})

test('a session ends when its endpoint has to pass a changed check', async () => {
  const { checkId, lookUp } = await dialGuarded()
  const changed = { typeId: 'DOMAIN', domains: ['c.example'] }
  await fixture.admin.request('PATCH', `/posture-checks/${checkId}`, changed)
  await expect.poll(lookUp).toEqual(notFound)
})

/** Gives the member a second factor and passes it. */
async function passMfa(member: Member) {
  await member.request('POST', '/current-identity/mfa')
  const factor = await member.request<{ provisioningUrl: string; recoveryCodes: string[] }>(
    'GET',
    '/current-identity/mfa',
  )
  await member.request('POST', '/current-identity/mfa/verify', { code: totp(factor.provisioningUrl) })
  return factor
}

test.each([
  [
    'its owner',
    (member: Member, code: string) =>
      member.call('DELETE', '/current-identity/mfa', undefined, { 'mfa-validation-code': code }),
  ],
  ['an admin', (member: Member) => fixture.admin.request('DELETE', `/identities/${member.id}/mfa`)],
])('a session ends when %s removes the second factor', async (_who, remove) => {
  const { member, serviceId } = await createGuarded({ typeId: 'MFA' })
  const { recoveryCodes } = await passMfa(member)
  const { id } = (await dial(member, serviceId)).body.data as { id: string }
  const updates = () => member.request('GET', '/current-api-session/service-updates')
  const before = await updates()
  await remove(member, recoveryCodes[0] ?? '')
  expect(await queriesOf(member)).toMatchObject([{ isPassing: false }])
  expect(await updates()).not.toEqual(before)
  expect(await fixture.refusalOf('GET', `/sessions/${id}`)).toEqual(notFound)
  expect((await dial(member, serviceId)).body.error?.code).toBe('INVALID_POSTURE')
})

test('a code passes a check for one until it expires', async () => {
  const { member, checkId, serviceId } = await createGuarded({ typeId: 'MFA', timeoutSeconds: 600 })
  expect(await queriesOf(member)).toMatchObject([{ isPassing: false }])
  expect((await dial(member, serviceId)).body.error?.code).toBe('INVALID_POSTURE')

  await passMfa(member)
  const query = { queryType: 'MFA', isPassing: true, timeout: 600 }
  expect(await queriesOf(member)).toMatchObject([{ isPassing: true, postureQueries: [query] }])
  const { status, body } = await dial(member, serviceId)
  expect(status).toBe(201)

  const { id } = body.data as { id: string }
  await fixture.admin.request('PATCH', `/posture-checks/${checkId}`, { typeId: 'MFA', timeoutSeconds: 3 })
  await expect.poll(() => fixture.refusalOf('GET', `/sessions/${id}`)).toEqual(notFound)
  expect((await dial(member, serviceId)).body.error?.code).toBe('INVALID_POSTURE')
})

test('refused requests are listed with the checks and the responses', async () => {
  const { member, checkId, serviceId, policyId } = await createGuarded({
    typeId: 'MAC',
    macAddresses: ['AA:BB'],
  })
  await respond(member, { id: checkId, typeId: 'MAC', macAddresses: ['11:22'] })
  await dial(member, serviceId)
  expect(await fixture.list(`/identities/${member.id}/failed-service-requests`)).toMatchObject([
    {
      serviceId,
      sessionType: 'Dial',
      policyFailures: [
        {
          policyId,
          checks: [{ postureCheckId: checkId, actualValue: ['1122'], expectedValue: ['aabb'] }],
        },
      ],
    },
  ])
  expect(await fixture.get(`/identities/${member.id}/posture-data`)).toMatchObject({
    mac: { addresses: ['1122'], postureCheckId: checkId },
  })
})

test('the posture of an unknown identity is empty', async () => {
  expect(await fixture.get('/identities/nobody/posture-data')).toMatchObject({ processes: [] })
  expect(await fixture.list('/identities/nobody/failed-service-requests')).toEqual([])
})

test('hashes are compared without colons and case, on both sides', async () => {
  const process = { osType: 'Linux', path: '/bin/x', hashes: ['AB:CD'], signerFingerprint: 'EF:01' }
  const { member, checkId, serviceId } = await createGuarded({ typeId: 'PROCESS', process })
  const running = { id: checkId, typeId: 'PROCESS', path: '/bin/x', isRunning: true }
  await respond(member, { ...running, hash: 'ab:cd', signerFingerprints: ['ef01'] })
  expect((await dial(member, serviceId)).status).toBe(201)
})

test('several processes are read back as they were written, and compared without colons and case', async () => {
  const words = { hashes: ['AB:cd', 'FF 00'], signerFingerprints: ['Ef:01'] }
  const process = { osType: 'Linux', path: '/Bin/X y', ...words }
  const asked = { typeId: 'PROCESS_MULTI', semantic: 'AllOf', processes: [process] }
  const { member, checkId, serviceId } = await createGuarded(asked)
  expect((await fixture.get(`/posture-checks/${checkId}`)).processes).toEqual([process])
  const running = { id: checkId, typeId: 'PROCESS', path: '/Bin/X y', isRunning: true }
  await respond(member, { ...running, hash: 'abcd', signerFingerprints: ['EF01'] })
  expect((await dial(member, serviceId)).status).toBe(201)
})

test('many responses are accepted together, or none of them', async () => {
  const { member } = await createGuarded({ typeId: 'DOMAIN', domains: ['a.example'] })
  const all = [domain('a.example'), { id: 'x', typeId: 'OS', type: 'Linux', version: '6.1.0', build: '' }]
  const bad = { id: 'x', typeId: 'NOPE' }
  expect(await fixture.refusalOf('POST', '/posture-response-bulk', [...all, bad], member)).toEqual([
    400,
    'COULD_NOT_PARSE_BODY',
  ])
  expect(await queriesOf(member)).toMatchObject([{ isPassing: false }])
  expect((await member.call('POST', '/posture-response-bulk', all)).status).toBe(201)
  expect(await queriesOf(member)).toMatchObject([{ isPassing: true }])
  expect((await member.call('POST', '/posture-response-bulk', [])).status).toBe(201)
})

test('bad input is refused with its field', async () => {
  const { refusalOf, sampleOf, createSample } = fixture
  const body = await sampleOf('posture-checks')
  const systems = [{ type: 'Linux', versions: ['not-a-version'] }]
  expect(
    await refusalOf('POST', '/posture-checks', { ...body, typeId: 'OS', operatingSystems: systems }),
  ).toEqual(invalid('operatingSystems.0.versions.0'))
  expect(await refusalOf('POST', '/posture-checks', { ...body, roleAttributes: [''] })).toEqual(
    invalid('roleAttributes'),
  )
  const path = `/posture-checks/${await createSample('posture-checks')}`
  expect(await refusalOf('PATCH', path, { typeId: 'DOMAIN' })).toEqual([200, undefined])
  expect(await refusalOf('PUT', path, { name: 'x', domains: ['a'] })).toEqual(invalid('typeId'))
})

test('checks can be filtered by their members', async () => {
  const name = fixture.newName()
  await fixture.createSample('posture-checks', { name, typeId: 'MFA', promptOnWake: true })
  const checks = await fixture.list(`/posture-checks?${filter(`name = "${name}" and promptOnWake = true`)}`)
  expect(checks).toMatchObject([{ name, promptOnWake: true, timeoutSeconds: -1 }])
})

test('a trace of an unknown identity is not found, and a bad duration is refused', async () => {
  const { id } = await fixture.createUser()
  const { refusalOf, admin } = fixture
  const wish = { enabled: true, duration: '1m', traceId: 'mine' }
  const { body } = await admin.call('PUT', `/identities/${id}/trace`, wish)
  expect(body).toMatchObject({ data: { enabled: true, traceId: 'mine' }, meta: null })
  expect(await refusalOf('PUT', '/identities/nobody/trace', wish)).toEqual(notFound)
  expect(await refusalOf('PUT', `/identities/${id}/trace`, { enabled: true, duration: '1 minute' })).toEqual(
    invalid('duration'),
  )
  expect(await admin.request('PUT', `/identities/${id}/trace`, { enabled: false })).toEqual({
    until: '0001-01-01T00:00:00.000Z',
  })
})
