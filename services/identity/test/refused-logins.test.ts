import { randomUUID } from 'node:crypto'
import { fingerprintOf } from '@overlay/x509'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { certify } from './certificates.js'
import { as, bytes, login, type Replica, system, type TestIdentity, testIdentity } from './identity.js'

let identity: TestIdentity
let one: Replica
const lines: { readonly [fact: string]: unknown }[] = []
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica({ onRefusal: (facts, msg) => void lines.push({ ...facts, msg }) })
})
afterAll(() => identity[Symbol.asyncDispose]())

const context = (requestId: string) => ({ ...system(), requestId, sourceAddress: '192.0.2.7' })

/** The line about the request. */
async function refusal(run: (request: ReturnType<typeof context>) => Promise<unknown>) {
  const request = context(randomUUID())
  await expect(run(request)).rejects.toBeDefined()
  const [line, ...more] = lines.filter(
    ({ requestId, msg }) => requestId === request.requestId && msg !== 'guesses paused',
  )
  expect(more).toEqual([])
  return line
}

async function alice(username: string) {
  const { id: identityId } = await one.entities.create(
    { kind: 'identities', json: bytes({ name: `${username}'s identity`, type: 'Default', isAdmin: false }) },
    system(),
  )
  const proof = { method: 'updb', identityId, username, password: 'right-one' }
  await one.entities.create({ kind: 'authenticators', json: bytes(proof) }, system())
  return identityId
}

test('a wrong password leaves user name, method, identity and address in the log, not the password', async () => {
  const identityId = await alice('alice')
  const line = await refusal((request) =>
    one.identity.authenticate(login({ username: 'alice', password: 'my-guess' }), request),
  )
  expect(line).toEqual({
    msg: 'login refused',
    method: 'password',
    reason: 'wrong password',
    username: 'alice',
    identityId,
    identityName: "alice's identity",
    sourceAddress: '192.0.2.7',
    requestId: line?.requestId,
    traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
  })
  expect(JSON.stringify(lines)).not.toContain('my-guess')
})

test('a user name that does not exist is logged, bounded and without control characters', async () => {
  const username = `\u001b[2J${'x'.repeat(10_000)}`
  const line = await refusal((request) =>
    one.identity.authenticate(login({ username, password: 'guess' }), request),
  )
  expect(line).toMatchObject({ reason: 'unknown', username: `\uFFFD[2J${'x'.repeat(124)}…` })
  expect(line).not.toHaveProperty('identityId', expect.anything())
})

interface AuditRow {
  readonly id: string
  readonly after: object
  readonly requestId: string
}

/** What the audit has from the address, oldest first. Rows are written behind the answers. */
async function audited(address: string): Promise<AuditRow[]> {
  const { rows } = await one.db.query<AuditRow & Record<string, unknown>>(sql`
    select entity_id as id, after, request_id as "requestId" from audit
     where kind = 'login-refusals' and source_address = ${address} order by audit.id`)
  return rows
}

test('refusals are in the audit, about the identity if it is known, without the name as typed', async () => {
  const identityId = await alice('audited')
  const origin = { ...system(), sourceAddress: '192.0.2.8' }
  for (const [requestId, username] of [
    ['first', 'audited'],
    ['second', 'a typed password'],
  ] as const)
    await expect(
      one.identity.authenticate(login({ username, password: 'guess' }), { ...origin, requestId }),
    ).rejects.toBeDefined()
  await expect
    .poll(() => audited('192.0.2.8'))
    .toEqual([
      {
        id: identityId,
        after: { name: "audited's identity", method: 'password', reason: 'wrong password' },
        requestId: 'first',
      },
      { id: '', after: { method: 'password', reason: 'unknown' }, requestId: 'second' },
    ])
})

test('the audit has ten refusals a minute of one source', async () => {
  const origin = { ...system(), sourceAddress: '192.0.2.9' }
  for (let n = 0; n < 12; n++)
    await expect(
      one.identity.authenticate(login({ method: 'cert' }), { ...origin, requestId: String(n) }),
    ).rejects.toBeDefined()
  await expect
    .poll(async () => (await audited('192.0.2.9')).map(({ requestId }) => requestId))
    .toHaveLength(10)
})

test('a user name that is paused is logged as such', async () => {
  const attempt = (request: ReturnType<typeof context>) =>
    one.identity.authenticate(login({ username: 'guessed', password: 'guess' }), request)
  const reasons: unknown[] = []
  for (let n = 0; n < 11; n++) reasons.push((await refusal(attempt))?.reason)
  expect(reasons).toEqual([...Array(10).fill('unknown'), 'paused'])
})

test('an untrusted certificate leaves its fingerprint and its subject in the log', async () => {
  const { certificate } = await certify({ name: 'mallory' })
  const line = await refusal((request) =>
    one.identity.authenticate(login({ method: 'cert', peerCertificates: [certificate.raw] }), request),
  )
  expect(line).toMatchObject({
    msg: 'login refused',
    method: 'cert',
    reason: 'untrusted certificate',
    fingerprint: fingerprintOf(certificate),
    subject: 'CN=mallory',
    sourceAddress: '192.0.2.7',
  })
})

test('a token of an external signer is refused in the same place', async () => {
  const line = await refusal((request) => one.identity.authenticate(login({ method: 'ext-jwt' }), request))
  expect(line).toMatchObject({ msg: 'login refused', method: 'ext-jwt', reason: 'no token' })
})

test('a source that presents too many bad tokens receives 429 with a time to wait', async () => {
  const from = { ...system(), sourceAddress: '192.0.2.8' }
  const present = () => one.identity.authenticate(login({ method: 'ext-jwt', bearerTokens: ['bad'] }), from)
  await expect(present()).rejects.toMatchObject({ code: 'INVALID_AUTH' })
  await one.db.query(sql`
    update guess set settled_at = now() + interval '5 minutes' where kind = 'token' and source = '192.0.2.8'`)
  await expect(present()).rejects.toMatchObject({ code: 'SERVER_TOO_MANY_REQUESTS', retryAfterSeconds: 1 })
})

test('a wrong code of a second factor leaves the identity in the log, not the code', async () => {
  const identityId = await alice('robert')
  const caller = { identityId, identityName: 'robert', apiSessionId: 's1' }
  await one.identity.startMfa({}, as(caller))
  const line = await refusal((request) =>
    one.identity.verifyMfa({ code: '918273' }, { ...as(caller), ...request, caller: as(caller).caller }),
  )
  expect(line).toMatchObject({ method: 'totp', reason: 'wrong code', ...caller, sourceAddress: '192.0.2.7' })
  expect(JSON.stringify(lines)).not.toContain('918273')
})

test('an enrollment by a certificate that no authority admits is logged', async () => {
  const { certificate } = await certify({ name: 'mallory' })
  const line = await refusal((request) =>
    one.identity.enrollByCertificate({ peerCertificates: [certificate.raw], name: '' }, request),
  )
  expect(line).toMatchObject({
    msg: 'enrollment refused',
    method: 'ca',
    reason: 'ENROLLMENT_NO_VALID_CAS',
    fingerprint: fingerprintOf(certificate),
  })
})
