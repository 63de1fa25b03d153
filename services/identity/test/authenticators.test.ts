import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { authority, certify, type Holder } from './certificates.js'
import {
  as,
  bytes,
  changesAfter,
  login,
  parsed,
  type Replica,
  system,
  type TestIdentity,
  testIdentity,
} from './identity.js'

let identity: TestIdentity
let one: Replica
let two: Replica
let signer: Holder
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
  two = await identity.replica()
  signer = await authority('signer')
  identity.world.trusted = [signer.certificate.toString()]
})
afterAll(() => identity[Symbol.asyncDispose]())

const kind = 'authenticators'
let count = 0
const person = async (more: object = {}): Promise<string> => {
  const body = { name: `person ${++count}`, type: 'Default', isAdmin: false, ...more }
  return (await one.entities.create({ kind: 'identities', json: bytes(body) }, system())).id
}
const create = (body: object) => one.entities.create({ kind, json: bytes(body) }, system())
const get = async (id: string): Promise<Record<string, unknown>> =>
  parsed((await one.entities.get({ ref: { kind, id }, perspective: undefined }, system())).json)
const update = (id: string, body: object) =>
  one.entities.update({ ref: { kind, id }, json: bytes(body), mask: Object.keys(body) }, system())
const enter = (username: string, password: string) =>
  one.identity.authenticate(login({ username, password }), system())
const present = (...holders: Holder[]) =>
  login({ method: 'cert', peerCertificates: holders.map(({ certificate }) => certificate.raw) })
const added = (identityId: string, more: object) => ({
  identityId,
  enrollmentId: `enrollment ${++count}`,
  certPem: '',
  isIssuedByNetwork: true,
  caId: '',
  peerCertificates: [],
  username: '',
  password: '',
  ...more,
})
const leaf = (more: Partial<Parameters<typeof certify>[0]> = {}) =>
  certify({ name: `leaf ${++count}`, issuer: signer, ...more })

test('a password authenticator shows its name and nothing of the password', async () => {
  const identityId = await person()
  const { id } = await create({ method: 'updb', identityId, username: 'shown', password: 'right-one' })
  expect(await get(id)).toEqual({
    _links: { self: { href: `./authenticators/${id}` }, identities: { href: `./identities/${identityId}` } },
    id,
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
    tags: {},
    method: 'updb',
    identityId,
    identity: expect.objectContaining({ entity: 'identities', id: identityId }),
    username: 'shown',
  })
})

test.each([
  ['an unknown method', { method: 'magic' }, 'COULD_NOT_VALIDATE', 'method'],
  ['a missing name', { username: undefined }, 'COULD_NOT_VALIDATE', 'username'],
  ['a missing password', { password: undefined }, 'COULD_NOT_VALIDATE', 'password'],
  ['a short name', { username: 'abc' }, 'COULD_NOT_VALIDATE', 'username'],
  ['a short password', { password: 'abcd' }, 'COULD_NOT_VALIDATE', 'password'],
  ['an unknown identity', { identityId: 'nothing' }, 'NOT_FOUND', undefined],
  ['a name that is taken', { username: 'first-come' }, 'COULD_NOT_VALIDATE', 'username'],
])('%s is refused', async (_what, wrong, code, field) => {
  const good = { method: 'updb', username: `user-${++count}`, password: 'right-one' }
  await create({ ...good, identityId: await person(), username: 'first-come' }).catch(() => undefined)
  const identityId = await person()
  await expect(create({ ...good, identityId, ...wrong })).rejects.toMatchObject({
    code,
    ...(field && { detail: { field } }),
  })
})

test('there is one authenticator of each method, also when two come at once', async () => {
  const identityId = await person()
  const results = await Promise.allSettled(
    ['left', 'right'].map((side) =>
      create({ method: 'updb', identityId, username: `both-${side}`, password: 'right-one' }),
    ),
  )
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  expect(results.find(({ status }) => status === 'rejected')).toMatchObject({
    reason: { code: 'MAX_AUTHENTICATOR_METHODS_REACHED' },
  })
})

test('the password rules of the auth policy hold', async () => {
  const policy = await one.entities.create(
    {
      kind: 'auth-policies',
      json: bytes({
        name: 'strict',
        primary: {
          cert: { allowed: true, allowExpiredCerts: true },
          extJwt: { allowed: true, allowedSigners: [] },
          updb: {
            allowed: true,
            minPasswordLength: 3,
            requireSpecialChar: false,
            requireNumberChar: true,
            requireMixedCase: false,
            maxAttempts: -1,
            lockoutDurationMinutes: -1,
          },
        },
        secondary: { requireTotp: false },
      }),
    },
    system(),
  )
  const identityId = await person({ authPolicyId: policy.id })
  const weak = { method: 'updb', identityId, username: 'strict-one', password: 'letters' }
  await expect(create(weak)).rejects.toMatchObject({ detail: { field: 'password', value: '' } })
  const { id } = await create({ ...weak, password: 'letters1' })
  await expect(update(id, { password: 'again' })).rejects.toMatchObject({ detail: { field: 'password' } })
  const shown = await one.entities.get(
    { ref: { kind: 'auth-policies', id: policy.id }, perspective: undefined },
    system(),
  )
  expect(parsed(shown.json)).toMatchObject({
    primary: { updb: { minPasswordLength: 5, maxAttempts: 0, lockoutDurationMinutes: 0 } },
    secondary: { requireTotp: false },
  })
})

test('a changed password counts at once', async () => {
  const { id } = await create({
    method: 'updb',
    identityId: await person(),
    username: 'changing',
    password: 'first-one',
  })
  await enter('changing', 'first-one')
  await update(id, { password: 'second-one' })
  await expect(enter('changing', 'first-one')).rejects.toMatchObject({ code: 'INVALID_AUTH' })
  await enter('changing', 'second-one')
})

test('the sessions of an authenticator end when it is deleted', async () => {
  const { id } = await create({
    method: 'updb',
    identityId: await person(),
    username: 'vanishing',
    password: 'right-one',
  })
  const { token } = await enter('vanishing', 'right-one')
  await one.entities.delete({ kind, id }, system())
  await expect(two.identity.getApiSession({ bearerTokens: [], token }, system())).rejects.toMatchObject({
    code: 'UNAUTHORIZED',
  })
})

test('the last authenticator of the default admin stays', async () => {
  const { id } = await enter(identity.admin.username, identity.admin.password)
  const session = await one.entities.get(
    { ref: { kind: 'api-sessions', id }, perspective: undefined },
    system(),
  )
  const { authenticatorId } = parsed<{ authenticatorId: string }>(session.json)
  await expect(one.entities.delete({ kind, id: authenticatorId }, system())).rejects.toMatchObject({
    code: 'ENTITY_CAN_NOT_BE_DELETED',
  })
})

test('a certificate of an admin must lead to a trusted authority, and is one', async () => {
  const identityId = await person()
  const foreign = await certify({ name: 'foreign', issuer: await authority('foreign authority') })
  const body = (certPem: string) => ({ method: 'cert', identityId, certPem })
  await expect(create(body(foreign.certificate.toString()))).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'certPem' },
  })
  await expect(create(body('nope'))).rejects.toMatchObject({ code: 'COULD_NOT_PARSE_PEM_BLOCK' })
  const holder = await leaf()
  const withKey = `${holder.certificate}-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n`
  await expect(create(body(withKey))).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'certPem', reason: 'certPem must not contain a private key' },
  })
  const { id } = await create(body(holder.certificate.toString()))
  const shown = await get(id)
  expect(shown).toMatchObject({ method: 'cert', fingerprint: expect.stringMatching(/^[0-9a-f]{40}$/) })
  expect(shown).not.toHaveProperty('isIssuedByNetwork')
  expect(shown).not.toHaveProperty('username')
  const session = await one.identity.authenticate(present(holder), system())
  expect(parsed(session.json)).toMatchObject({ authenticatorId: id, isCertExtendable: false })
})

test('four redemptions of one enrollment make one authenticator', async () => {
  const holder = await leaf()
  const request = added(await person(), { certPem: holder.certificate.toString() })
  const before = await one.changeLog.head()
  const answers = await Promise.all(
    [one, two, one, two].map(({ identity }) => identity.addAuthenticator(request, system())),
  )
  expect(answers.filter(({ created }) => created)).toHaveLength(1)
  expect(new Set(answers.map(({ authenticatorId }) => authenticatorId)).size).toBe(1)
  const changes = await changesAfter(one.changeLog, before)
  expect(changes.map(({ json }) => parsed(json))).toMatchObject([{ enrollmentId: request.enrollmentId }])
})

test('a redeemed certificate logs in, is extendable, and is stored for routers', async () => {
  const holder = await leaf()
  const identityId = await person()
  await one.identity.addAuthenticator(added(identityId, { certPem: holder.certificate.toString() }), system())
  const session = await two.identity.authenticate(present(holder), system())
  expect(session.identityId).toBe(identityId)
  expect(parsed(session.json)).toMatchObject({ isCertExtendable: true })
})

test.each([
  ['no certificate', async () => []],
  ['an unknown certificate', async () => [await leaf()]],
  [
    'one that leads nowhere',
    async () => [await certify({ name: 'x', issuer: await authority('elsewhere') })],
  ],
])('a login with %s is refused', async (_what, holders) => {
  await expect(one.identity.authenticate(present(...(await holders())), system())).rejects.toMatchObject({
    code: 'INVALID_AUTH',
  })
})

test('a certificate that is in use, and a name that is taken, are not added again', async () => {
  const holder = await leaf()
  const certPem = holder.certificate.toString()
  await one.identity.addAuthenticator(added(await person(), { certPem }), system())
  await expect(
    one.identity.addAuthenticator(added(await person(), { certPem }), system()),
  ).rejects.toMatchObject({
    code: 'CERT_IN_USE',
  })
  const proof = { username: 'enrolled', password: 'right-one' }
  await one.identity.addAuthenticator(added(await person(), proof), system())
  await expect(one.identity.addAuthenticator(added(await person(), proof), system())).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'username' },
  })
  await enter('enrolled', 'right-one')
})

test('what is redeemed together is audited each for its request, and one that is refused stops no other', async () => {
  const taken = (await leaf()).certificate.toString()
  await one.identity.addAuthenticator(added(await person(), { certPem: taken }), system())
  const pems = [
    ...(await Promise.all([leaf(), leaf(), leaf()])).map((holder) => holder.certificate.toString()),
    taken,
  ]
  const requests = await Promise.all(pems.map(async (certPem) => added(await person(), { certPem })))
  const answers = await Promise.allSettled(
    requests.map((request) =>
      one.identity.addAuthenticator(request, { ...system(), requestId: `of ${request.enrollmentId}` }),
    ),
  )
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected'])
  const { rows } = await one.changeLog.db.query<{ request: string; enrollment: string }>(sql`
    select request_id as request, after ->> 'enrollmentId' as enrollment from audit
     where request_id like 'of %' order by id`)
  expect(rows).toHaveLength(3)
  for (const { request, enrollment } of rows) expect(request).toBe(`of ${enrollment}`)
})

test('a deleted identity gets no authenticator', async () => {
  await expect(
    one.identity.addAuthenticator(added('nothing', { username: 'orphan', password: 'right-one' }), system()),
  ).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('expired certificates log in where the policy says so, early ones never', async () => {
  const hour = 3_600_000
  const now = Date.now()
  const expired = await leaf({ from: new Date(now - 2 * hour), to: new Date(now - hour) })
  const early = await leaf({ from: new Date(now + hour), to: new Date(now + 2 * hour) })
  for (const holder of [expired, early])
    await one.identity.addAuthenticator(
      added(await person(), { certPem: holder.certificate.toString() }),
      system(),
    )
  await one.identity.authenticate(present(expired), system())
  await expect(one.identity.authenticate(present(early), system())).rejects.toMatchObject({
    code: 'INVALID_AUTH',
  })
  const allow = (allowExpiredCerts: boolean) =>
    one.entities.update(
      {
        ref: { kind: 'auth-policies', id: 'default' },
        json: bytes({ primary: { cert: { allowExpiredCerts } } }),
        mask: ['primary.cert.allowExpiredCerts'],
      },
      system(),
    )
  await allow(false)
  await expect(one.identity.authenticate(present(expired), system())).rejects.toMatchObject({
    code: 'INVALID_AUTH',
  })
  await allow(true)
})

test('an identity changes its own password with the old one', async () => {
  const identityId = await person()
  const { id } = await create({ method: 'updb', identityId, username: 'selfish', password: 'first-one' })
  const context = as({ identityId })
  const change = (body: object) =>
    one.identity.updateOwnAuthenticator(
      { ref: { kind, id }, json: bytes(body), mask: Object.keys(body) },
      context,
    )
  await expect(change({ password: 'second-one', currentPassword: 'guessed' })).rejects.toMatchObject({
    code: 'UNAUTHORIZED',
    detail: { field: 'currentPassword', value: '' },
  })
  await change({ password: 'second-one', currentPassword: 'first-one' })
  await enter('selfish', 'second-one')
})

test('the self-service shows the own authenticators, to an admin too, and links to itself', async () => {
  const identityId = await person()
  const { id } = await create({ method: 'updb', identityId, username: 'watching', password: 'first-one' })
  const context = as({ identityId, isAdmin: true })
  const page = await one.identity.listOwnAuthenticators(
    { kind, query: undefined, within: undefined, perspective: undefined },
    context,
  )
  expect(page.total).toBe(1)
  expect(parsed(page.rows)).toMatchObject([
    { id, _links: { self: { href: `./current-identity/authenticators/${id}` } } },
  ])
  const own = await one.identity.getOwnAuthenticator({ kind, id }, context)
  expect(parsed(own.json)).toMatchObject({ id, username: 'watching' })
  await expect(
    one.identity.getOwnAuthenticator({ kind, id }, as({ identityId: 'somebody', isAdmin: true })),
  ).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('re-enrolling takes the authenticator away and asks for an enrollment of the same name', async () => {
  const identityId = await person()
  const { id } = await create({ method: 'updb', identityId, username: 'renewing', password: 'first-one' })
  const { token } = await enter('renewing', 'first-one')
  await expect(
    one.identity.reEnrollAuthenticator({ id, expiresAtMs: Date.now() - 1000 }, system()),
  ).rejects.toMatchObject({ code: 'REFERENCED_ENTITY_NOT_FOUND' })
  const expiresAtMs = Date.now() + 100_000
  const written = await one.identity.reEnrollAuthenticator({ id, expiresAtMs }, system())
  expect(identity.world.waits.at(-1)).toEqual(['pki'])
  expect(identity.world.wishes.at(-1)).toMatchObject({
    id: written.id,
    method: 'updb',
    username: 'renewing',
    expiresAtMs,
  })
  await expect(get(id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(two.identity.getApiSession({ bearerTokens: [], token }, system())).rejects.toMatchObject({
    code: 'UNAUTHORIZED',
  })
})
