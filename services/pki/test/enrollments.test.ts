import { createPublicKey, randomUUID, verify, X509Certificate } from 'node:crypto'
import { type Change, type EnrollmentWish, Fault } from '@overlay/rpc'
import { withLoadedRows } from '@overlay/store/change-log'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { identityConsumer } from '../src/consumers/identity.js'
import { sessionsConsumer } from '../src/consumers/sessions.js'
import { context, faultOf, noWish, type Pki, startPki } from './network.js'
import { newCsr } from './openssl.js'

let pki: Pki
beforeAll(async () => {
  pki = await startPki()
})
afterAll(() => pki[Symbol.asyncDispose]())

const rowOf = async (id: string) => (await pki.outstanding()).find((row) => row.id === id)
const viewOf = async (kind: string, id: string) => {
  const { json } = await pki.entities.view({ kind, ids: [id] }, context)
  return JSON.parse(Buffer.from(json[0] ?? '').toString())
}
const create = (body: object) =>
  pki.entities.create({ kind: 'enrollments', json: Buffer.from(JSON.stringify(body)) }, context)
const newIdentity = () => {
  const id = randomUUID()
  pki.names.set(id, 'alice')
  return id
}
const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString()

test('an identity that wants an enrollment gets it once its position is consumed, one time', async () => {
  const before = Date.now()
  const wish = await pki.wish({})
  const { id, token, identityId } = wish
  await pki.follow('identity', 'identities', identityId, { name: 'bob', enrollmentWanted: wish })

  const { enrollment } = await viewOf('identities', identityId)
  expect(enrollment).toEqual({ ott: { id, token, jwt: expect.any(String), expiresAt: expect.any(String) } })
  const minutes = (Date.parse(enrollment.ott.expiresAt) - before) / 60_000
  expect(Math.round(minutes)).toBe(180)
})

test('a token is signed with the key that gateways serve, and names their address', async () => {
  const { identityId, token } = await pki.wish({})
  const { jwt, expiresAt } = (await viewOf('identities', identityId)).enrollment.ott
  const [header, claims, signature] = jwt.split('.') as [string, string, string]
  const { chainPem, fingerprint } = await pki.pki.getServerCertificate({}, context)
  const key = createPublicKey(new X509Certificate(chainPem).publicKey.export({ type: 'spki', format: 'pem' }))
  const signed = Buffer.from(`${header}.${claims}`)
  const proof = Buffer.from(signature, 'base64url')
  expect(verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, proof)).toBe(true)
  expect(JSON.parse(Buffer.from(header, 'base64url').toString()).kid).toBe(fingerprint)
  expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toEqual({
    iss: 'https://api.example:1280',
    sub: identityId,
    aud: [''],
    exp: Math.floor(Date.parse(expiresAt) / 1000),
    jti: token,
    em: 'ott',
    ctrls: null,
  })
})

test('an enrollment shows its owner, and leaves out members that it does not have', async () => {
  const { id, token, identityId } = await pki.wish({})
  pki.names.set(identityId, 'carol')
  expect(await rowOf(id)).toEqual({
    _links: { self: { href: `./enrollments/${id}` } },
    createdAt: expect.any(String),
    expiresAt: expect.any(String),
    id,
    identity: expect.objectContaining({ entity: 'identities', id: identityId, name: 'carol' }),
    identityId,
    jwt: expect.any(String),
    method: 'ott',
    tags: {},
    token,
    updatedAt: expect.any(String),
  })
})

test('followers and the audit get neither token nor JWT', async () => {
  const { id, token } = await pki.wish({})
  await pki.enroll({ token, csrPem: newCsr() })
  const { rows } = await pki.changeLog.db.query<{ text: string }>(sql`
    select row_to_json(change)::text as text from change where entity_id = ${id}
     union all select row_to_json(audit)::text from audit where entity_id = ${id}`)
  expect(rows.length).toBe(4)
  expect(JSON.stringify(rows)).not.toMatch(new RegExp(`${token}|eyJ`))
})

test('a crash after the owner has added the authenticator leads to the same state', async () => {
  const redeemed = await pki.wish({})
  await pki.follow('identity', 'authenticators', randomUUID(), { enrollmentId: redeemed.id })
  expect(await rowOf(redeemed.id)).toBeUndefined()
  expect(await faultOf(pki.enroll({ token: redeemed.token, csrPem: newCsr() }))).toEqual([
    'INVALID_ENROLLMENT_TOKEN',
  ])
})

test('a token whose claim has expired may be claimed again, but the owner keeps what it has', async () => {
  const { id, token } = await pki.wish({})
  await pki.changeLog.db.query(sql`
    update enrollment set claimed_until = now() - interval '1 s', claim_hash = 'of another' where id = ${id}`)
  const first = { enrollmentId: id, certPem: 'first', isIssuedByNetwork: true }
  await pki.owners.identity.addAuthenticator(
    { ...first, identityId: '', username: '', password: '', caId: '', peerCertificates: [] },
    context,
  )
  expect(await faultOf(pki.enroll({ token, csrPem: newCsr() }))).toEqual(['INVALID_ENROLLMENT_TOKEN'])
  expect(await rowOf(id)).toBeUndefined()
})

test('a load ends enrollments of deleted identities and redeemed ones, and none of an identity that is newer', async () => {
  const [gone, ended, redeemed] = [await pki.wish({}), await pki.wish({}), await pki.wish({})]
  const [living, young] = [await pki.wish({}), await pki.wish({})]
  await pki.entities.delete({ kind: 'enrollments', id: ended.id }, context)
  const row = (kind: string, id: string, json: object) => ({
    kind,
    id,
    json: Buffer.from(JSON.stringify(json)),
    atMs: 0,
    number: 0,
  })
  const rows = [
    row('identities', redeemed.identityId, {}),
    row('identities', living.identityId, {}),
    row('authenticators', 'a1', { enrollmentId: redeemed.id }),
  ]
  const names = async (_: string, ids: readonly string[]) =>
    new Map(ids.filter((id) => id === young.identityId).map((id) => [id, id]))
  const { effects } = identityConsumer({
    source: pki.sources.identity,
    issuer: noIssuer,
    names,
  })
  const upto = { timeline: '', number: 0 }
  await pki.changeLog.db.transaction(undefined, (tx) =>
    withLoadedRows(tx, [rows], (loaded) => effects.reload(tx, loaded, upto)),
  )
  expect([await rowOf(gone.id), await rowOf(redeemed.id)]).toEqual([undefined, undefined])
  expect([(await rowOf(living.id))?.id, (await rowOf(young.id))?.id]).toEqual([living.id, young.id])
  const { rows: recorded } = await pki.changeLog.db.query(
    sql`select from ended_enrollment where owner_id = any(${[gone.identityId, ended.identityId]})`,
  )
  expect(recorded).toEqual([])
})

const unexpected = (): never => {
  throw new Error('nothing is to be issued')
}
const noIssuer = {
  issue: unexpected,
  issueAsOf: unexpected,
  signed: unexpected,
  caJwt: unexpected,
}

const enrollmentOfRouter = {
  token: randomUUID(),
  method: 'erott',
  identityId: null,
  transitRouterId: null,
  caId: null,
  username: null,
  expiresAt: new Date(),
} as const

test('a load ends the enrollments of deleted routers', async () => {
  const [gone, living] = [await pki.routerWish('erott'), await pki.routerWish('trott')]
  const { effects } = sessionsConsumer({
    source: pki.sources.sessions,
    issuer: noIssuer,
    names: async (_, ids) => new Map(ids.filter((id) => id === living.routerId).map((id) => [id, id])),
  })
  await pki.changeLog.db.transaction(undefined, (tx) =>
    withLoadedRows(tx, [], (loaded) => effects.reload(tx, loaded, { timeline: '', number: 0 })),
  )
  expect(await rowOf(gone.id)).toBeUndefined()
  expect((await rowOf(living.id))?.id).toBe(living.id)
})

test('a router that has the enrollment that it names keeps it; others get or lose theirs', async () => {
  const [consistent, ended] = [await pki.routerWish('erott'), await pki.routerWish('trott')]
  await pki.entities.delete({ kind: 'enrollments', id: ended.id }, context)
  const [enrolled, replaced] = [await pki.routerWish('erott'), await pki.routerWish('erott')]
  const issue = (wish: EnrollmentWish) => ({
    ...enrollmentOfRouter,
    id: wish.id,
    edgeRouterId: wish.edgeRouterId,
  })
  const { effects } = sessionsConsumer({
    source: pki.sources.sessions,
    issuer: { ...noIssuer, issue },
    names: async () => new Map(),
  })
  const router = (id: string, enrollmentId: string, isVerified = false): Change => ({
    kind: 'edge-routers',
    id,
    json: Buffer.from(JSON.stringify({ enrollmentId, isVerified, isEdge: true })),
    atMs: 0,
    number: 0,
  })
  const rows = [
    router(consistent.routerId, consistent.id),
    router(ended.routerId, ended.id),
    router(enrolled.routerId, enrolled.id, true),
    router(replaced.routerId, 'another'),
  ]
  const changes = await pki.changeLog.db.transaction(undefined, (tx) =>
    effects.apply(tx, rows, { timeline: '', number: 0 }),
  )
  expect(changes.map(({ id }) => id)).toEqual([enrolled.id, replaced.id, 'another'])
})

test('a wish that comes again after its enrollment ended is not granted again', async () => {
  const wish = await pki.wish({})
  await pki.entities.delete({ kind: 'enrollments', id: wish.id }, context)
  await pki.follow('identity', 'identities', wish.identityId, { enrollmentWanted: wish })
  expect(await rowOf(wish.id)).toBeUndefined()
})

test('enrollments end with their identity or router', async () => {
  const { id, identityId } = await pki.wish({})
  await pki.follow('identity', 'identities', identityId, null)
  const router = await pki.routerWish('erott', 'gone')
  await pki.follow('sessions', 'edge-routers', 'gone', null)
  expect([await rowOf(id), await rowOf(router.id)]).toEqual([undefined, undefined])
  const { rows } = await pki.changeLog.db.query(
    sql`select from ended_enrollment where owner_id = ${identityId}`,
  )
  expect(rows).toEqual([])
})

test('the enrollment of a router stays when the identity of its tunneler, which has the same id, is deleted', async () => {
  const { id, routerId, token } = await pki.routerWish('erott')
  await pki.follow('identity', 'identities', routerId, { name: 'r1' })
  await pki.follow('identity', 'identities', routerId, null)
  expect(await rowOf(id)).toMatchObject({ edgeRouterId: routerId, token })
})

test('a deleted enrollment of a router stays deleted when the identity of its tunneler is deleted', async () => {
  const { id, routerId } = await pki.routerWish('erott')
  await pki.entities.delete({ kind: 'enrollments', id }, context)
  await pki.follow('identity', 'identities', routerId, null)
  await pki.follow('sessions', 'edge-routers', routerId, {
    enrollmentId: id,
    isVerified: false,
    isEdge: true,
  })
  expect(await rowOf(id)).toBeUndefined()
})

test('a router has one enrollment, the latest, and none once it has enrolled', async () => {
  const first = await pki.routerWish('erott')
  const wish = await pki.routerWish('erott', first.routerId)
  const second = wish
  expect([await rowOf(first.id), (await rowOf(second.id))?.edgeRouterId]).toEqual([undefined, wish.routerId])
  const { token, jwt, createdAt, expiresAt } = (await rowOf(second.id)) ?? {}
  expect(await viewOf('edge-routers', wish.routerId)).toEqual({
    enrollmentToken: token,
    enrollmentJwt: jwt,
    enrollmentCreatedAt: createdAt,
    enrollmentExpiresAt: expiresAt,
  })
  await pki.follow('sessions', 'edge-routers', wish.routerId, { isVerified: true })
  expect(Object.values(await viewOf('edge-routers', wish.routerId))).toEqual([null, null, null, null])
})

test('an admin gives an identity another enrollment, one of each method', async () => {
  const identityId = newIdentity()
  const expiresAt = inAnHour()
  const { id } = await create({ method: 'ott', identityId, expiresAt })
  expect(await rowOf(id)).toMatchObject({ method: 'ott', identityId, expiresAt })
  expect(pki.expected).toContainEqual({ enrollmentId: id, identityId })
  expect(await faultOf(create({ method: 'ott', identityId, expiresAt }))).toEqual([
    'ENROLLMENT_EXISTS',
    expect.objectContaining({ field: 'method', value: 'ott' }),
  ])
  await create({ method: 'updb', identityId, expiresAt, username: 'alice' })
})

test('no enrollment is created where identity does not expect it', async () => {
  const expectEnrollment = () => Promise.reject(new Fault('UNAVAILABLE'))
  await using other = await startPki({ expectEnrollment })
  other.names.set('alice', 'alice')
  const body = { method: 'ott', identityId: 'alice', expiresAt: inAnHour() }
  const json = Buffer.from(JSON.stringify(body))
  expect(await faultOf(other.entities.create({ kind: 'enrollments', json }, context))).toEqual([
    'UNAVAILABLE',
  ])
  expect(await other.outstanding()).toEqual([])
})

test.each([
  ['an unknown identity', { identityId: 'nobody' }, 'identity not found'],
  ['a past end', { expiresAt: '2001-01-01T00:00:00Z' }, 'expiresAt must be in the future'],
  ['an unknown authority', { method: 'ottca', caId: 'nothing' }, 'ca not found'],
  ['no user name', { method: 'updb' }, 'username must have 4 to 100 characters'],
])('an enrollment with %s is refused', async (_what, more, reason) => {
  const body = { method: 'ott', identityId: newIdentity(), expiresAt: inAnHour(), ...more }
  expect(await faultOf(create(body))).toEqual([
    'REFERENCED_ENTITY_NOT_FOUND',
    expect.stringContaining(`is invalid: ${reason}`),
  ])
})

test('a check refuses what could not be granted', async () => {
  const check = (more: object) =>
    faultOf(pki.pki.checkEnrollment({ ...noWish, identityId: 'i', ...more }, context))
  expect(await check({ method: 'ottca', caId: 'nothing' })).toEqual([
    'NOT_FOUND',
    { field: 'caId', reason: 'ca not found', value: 'nothing' },
  ])
  expect(await check({ method: 'updb', username: 'abc' })).toEqual([
    'COULD_NOT_VALIDATE',
    expect.objectContaining({ field: 'username' }),
  ])
  const { identityId } = await pki.wish({})
  expect((await check({ identityId }))[0]).toBe('ENROLLMENT_EXISTS')
  expect(await pki.pki.checkEnrollment({ ...noWish, identityId: 'i' }, context)).toEqual({})
})

test('a check waits until changes of identity are followed', async () => {
  const unreachable = {
    schema: 'identity',
    load: () => never(),
    watch: () => never(),
    pull: () => Promise.reject(new Error('away')),
    row: () => Promise.reject(new Error('away')),
  }
  await using late = await startPki({ sources: { ...pki.sources, identity: unreachable } })
  const abort = new AbortController()
  const promised = late.pki.checkEnrollment(
    { ...noWish, identityId: 'i' },
    { ...context, signal: abort.signal },
  )
  abort.abort()
  expect(await faultOf(promised)).toEqual(['TIMEOUT'])
})

// biome-ignore lint/correctness/useYield: it fails before
async function* never(): AsyncGenerator<never> {
  throw new Error('away')
}

test('a refreshed enrollment has another token and end, and the old token is void', async () => {
  const { id, token, identityId } = await pki.wish({})
  const expiresAtMs = Date.parse('2098-01-01T00:00:00Z')
  await pki.pki.refreshEnrollment({ id, expiresAtMs }, context)
  const { ott } = (await viewOf('identities', identityId)).enrollment
  expect(ott).toMatchObject({ id, expiresAt: '2098-01-01T00:00:00.000Z' })
  expect(ott.token).not.toBe(token)
  expect(await faultOf(pki.enroll({ token, csrPem: newCsr() }))).toEqual(['INVALID_ENROLLMENT_TOKEN'])
  expect((await pki.enroll({ token: ott.token, csrPem: newCsr() })).method).toBe('ott')
})

test('a refresh into the past, of nothing, or of a router is refused', async () => {
  const expiresAtMs = Date.now() + 60_000
  const { id } = await pki.wish({})
  const router = await pki.routerWish('erott')
  const refresh = async (one: string, at = expiresAtMs) =>
    (await faultOf(pki.pki.refreshEnrollment({ id: one, expiresAtMs: at }, context)))[0]
  expect(await refresh(id, 1)).toBe('COULD_NOT_VALIDATE')
  expect(await refresh('nothing')).toBe('NOT_FOUND')
  expect(await refresh(router.id)).toBe('COULD_NOT_VALIDATE')
})

test('an identity whose deletion is consumed during a create gets no enrollment', async () => {
  const identityId = newIdentity()
  await pki.follow('identity', 'identities', identityId, { name: 'alice' })
  const { db } = pki.changeLog
  const waiting = async (count: number): Promise<void> =>
    expect
      .poll(async () => {
        const { rowCount } = await db.query(sql`
          select from pg_stat_activity
           where wait_event_type = 'Lock' and datname = current_database() and application_name = 'pki'`)
        return rowCount
      })
      .toBe(count)
  let creating: Promise<unknown> | undefined
  await db.transaction(undefined, async (tx) => {
    await tx.query(sql`select from stream for update`) // blocks commits of changes
    creating = create({ method: 'ott', identityId, expiresAt: inAnHour() })
    await waiting(1)
    await pki.change('identity', 'identities', identityId, null)
    await waiting(2)
  })
  await creating
  await expect
    .poll(async () => (await pki.outstanding()).filter((row) => row.identityId === identityId))
    .toEqual([])
})
