import { randomUUID } from 'node:crypto'
import { edgeErrorCode, edgeType, SessionRemoved, ValidateSessionsRequest } from '@overlay/channel'
import { Fault, ownContext } from '@overlay/rpc'
import { noBus } from '@overlay/store/change-log'
import { newId } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AccessClaim } from '../src/domain/router-access.js'
import { NO_FEATURES } from '../src/domain/router-features.js'
import type { SessionFacts } from '../src/domain/session-token.js'
import type { Presence } from '../src/routers/router-presence.js'
import { endManySessions, endSessions } from '../src/store/session.js'
import type { SessionTokens } from '../src/tokens/session-tokens.js'
import {
  fakeIdentity,
  heartbeat,
  startAccess,
  type TestAccessOptions,
  type TestRouter,
  testRouter,
} from './access.js'
import { startStore } from './store.js'

let store: Awaited<ReturnType<typeof startStore>>
beforeAll(async () => {
  store = await startStore()
})
afterAll(() => store[Symbol.asyncDispose]())

async function startReplica(
  common: Readonly<Record<string, readonly string[]>> = {},
  more: Partial<Pick<TestAccessOptions, 'grants' | 'presence' | 'createSession'>> = {},
) {
  const identity = fakeIdentity()
  const commonRouters = (identityId: string, serviceId: string) => common[`${identityId} ${serviceId}`] ?? []
  const access = await startAccess(store.changeLog, {
    ...{ bus: noBus, identity, commonRouters, ...more },
  })
  return { identity, access, [Symbol.asyncDispose]: () => access[Symbol.asyncDispose]() }
}

async function makeSession(apiSessionId: string, identityId: string, type = 'Dial') {
  const [id, token] = [newId('cuid'), randomUUID()]
  await store.changeLog.db.query(sql`
    insert into session (id, token, type, api_session_id, service_id, identity_id)
    values (${id}, ${token}, ${type}, ${apiSessionId}, 'wiki', ${identityId})`)
  return { id, token }
}

const featuresOf = (needsSignedSessions: boolean) => ({
  hasDataModel: true,
  verifiesTokens: true,
  needsSignedSessions,
  isGrouped: false,
  comparesModel: false,
})

test('only routers that evaluate devices carry a session whose device is evaluated there', async () => {
  const routers: Readonly<Record<string, readonly boolean[]>> = { r1: [true], r2: [false], r3: [true, false] }
  const presence = {
    of: (id: string) => (routers[id] ?? []).map((is) => ({ features: featuresOf(is) }) as Presence),
    hasFormerReplicas: () => false,
    onChange: () => ({ [Symbol.dispose]: () => undefined }),
  }
  const common = { 'dora wiki': ['r1', 'r2', 'r3', 'r4'] }
  await using replica = await startReplica(common, { presence })
  const { id } = replica.identity.bearer('dora', { id: '1', token: 'eyJ.1' })
  const { id: sessionId, token } = await makeSession(id, 'dora')
  const use = (routerId: string) =>
    replica.access.concern.checkAccess(claim(token, { routerId, fingerprints: ['one'] }))
  await store.changeLog.db.query(sql`update session set posture_at_routers = true where id = ${sessionId}`)
  expect(await use('r1')).toMatchObject({ sessionId })
  for (const routerId of ['r2', 'r3', 'r4'])
    await expect(use(routerId)).rejects.toMatchObject({ message: 'invalid session' })
  await store.changeLog.db.query(sql`update session set posture_at_routers = false where id = ${sessionId}`)
  expect(await use('r2')).toMatchObject({ sessionId })
})

const claim = (sessionToken: string, more: Partial<AccessClaim> = {}): AccessClaim => ({
  routerId: 'r1',
  sessionToken,
  apiSessionToken: '',
  fingerprints: ['other', 'one'],
  type: 'Dial',
  ...more,
})

test('a claim of a session, a certificate and a router that go together is granted', async () => {
  await using replica = await startReplica({ 'alice wiki': ['r1', 'r2'] })
  const apiSession = replica.identity.login('alice', 'one', 'two')
  const { id, token } = await makeSession(apiSession.id, 'alice')
  expect(await replica.access.concern.checkAccess(claim(token))).toEqual({
    sessionId: id,
    apiSessionId: apiSession.id,
    identityId: 'alice',
    serviceId: 'wiki',
  })
})

test('a claim under an API session of access tokens is granted until it ends', async () => {
  await using replica = await startReplica({ 'alice wiki': ['r1'] })
  const apiSession = replica.identity.bearer('alice', { id: '1', token: 'eyJ.first' })
  const { id, token } = await makeSession(apiSession.id, 'alice')
  expect(await replica.access.concern.checkAccess(claim(token))).toMatchObject({ sessionId: id })
  replica.identity.end(apiSession.id)
  await replica.access.receive(testRouter(), heartbeat('eyJ.first')) // waits for the change
  await expect(replica.access.concern.checkAccess(claim(token))).rejects.toMatchObject({ code: 2 })
})

test.each([
  ['an unknown session', { sessionToken: 'unknown' }, 3, 'invalid session'],
  ['a session of the other type', { type: 'Bind' }, 4, 'incorrect session type'],
  ['another certificate', { fingerprints: ['other'] }, 2, 'invalid api session'],
  ['no certificate', { fingerprints: [] }, 2, 'invalid api session'],
  ['a certificate that is out of date', { fingerprints: ['over'] }, 2, 'invalid api session'],
  [
    'a router that identity and service do not share',
    { routerId: 'r9' },
    5,
    'invalid edge router for session',
  ],
] as const)('a claim with %s is refused', async (_what, more, code, message) => {
  await using replica = await startReplica({ 'alice wiki': ['r1'] })
  const apiSession = replica.identity.login('alice', 'one')
  replica.identity.put({ ...apiSession, expiring: [{ fingerprint: 'over', validToMs: Date.now() - 1 }] })
  const { token } = await makeSession(apiSession.id, 'alice')
  const refused = replica.access.concern.checkAccess(claim(token, more))
  await expect(refused).rejects.toMatchObject({ code, message })
})

const signedFor = async (
  { access }: { readonly access: { readonly tokens: SessionTokens } },
  { id, apiSessionId }: { readonly id: string; readonly apiSessionId: string },
  more: Partial<SessionFacts> = {},
): Promise<string> =>
  (await access.tokens.sign({
    ...{ id, apiSessionId, identityId: 'alice', serviceId: 'wiki', type: 'Dial' as const },
    ...more,
  })) ?? ''

test('a claim of a signed token is granted while its session is stored, with the token of its API session', async () => {
  await using replica = await startReplica({ 'alice wiki': ['r1'] })
  const { concern } = replica.access
  const apiSession = replica.identity.bearer('alice', { id: '1', token: 'eyJ.first' })
  const { id } = await makeSession(apiSession.id, 'alice')
  const token = await signedFor(replica, { id, apiSessionId: apiSession.id })
  const granted = { sessionId: id, apiSessionId: apiSession.id, identityId: 'alice', serviceId: 'wiki' }
  for (const apiSessionToken of ['', 'eyJ.first'])
    expect(await concern.checkAccess(claim(token, { apiSessionToken }))).toEqual(granted)

  const other = replica.identity.bearer('alice', { id: '2', token: 'eyJ.other' })
  for (const apiSessionToken of ['eyJ.other', 'eyJ.unknown', other.id])
    await expect(concern.checkAccess(claim(token, { apiSessionToken }))).rejects.toMatchObject({ code: 2 })
  await store.changeLog.db.query(sql`delete from session where id = ${id}`)
  await expect(concern.checkAccess(claim(token))).rejects.toMatchObject({ code: 3 })
})

test.each<[string, Partial<SessionFacts>]>([
  ['another API session', { apiSessionId: 'other' }],
  ['another identity', { identityId: 'bob' }],
  ['another service', { serviceId: 'blog' }],
  ['the other type', { type: 'Bind' }],
  ['no stored session', { id: 'unknown' }],
])('a signed token about %s is refused', async (_what, more) => {
  await using replica = await startReplica({ 'alice wiki': ['r1'] })
  const apiSession = replica.identity.login('alice', 'one')
  const { id } = await makeSession(apiSession.id, 'alice')
  const token = await signedFor(replica, { id, apiSessionId: apiSession.id }, more)
  await expect(replica.access.concern.checkAccess(claim(token))).rejects.toMatchObject({ code: 3 })
})

test('the id of a session is no token, nor is a signed text with its id', async () => {
  await using replica = await startReplica({ 'alice wiki': ['r1'] })
  const apiSession = replica.identity.login('alice', 'one')
  const { id } = await makeSession(apiSession.id, 'alice')
  const own = await signedFor(replica, { id, apiSessionId: apiSession.id })
  for (const token of [id, `${own.slice(0, -4)}AAAA`])
    await expect(replica.access.concern.checkAccess(claim(token))).rejects.toMatchObject({ code: 3 })
})

test('a claim is refused once its API session or its session has ended', async () => {
  await using replica = await startReplica({ 'alice wiki': ['r1'] })
  const { identity, access } = replica
  const [first, second] = [identity.login('alice', 'one'), identity.login('alice', 'one')]
  const { token } = await makeSession(first.id, 'alice')
  const other = await makeSession(second.id, 'alice')
  await access.concern.checkAccess(claim(token))
  await access.concern.checkAccess(claim(other.token))
  identity.end(first.id)
  identity.login('bob')
  const router = testRouter()
  await access.connect(router)
  await router.until(() => access.synced.has(router.routerId))
  await expect(access.concern.checkAccess(claim(token))).rejects.toMatchObject({ code: 2 })
  await store.changeLog.db.query(sql`delete from session where id = ${other.id}`)
  await expect(access.concern.checkAccess(claim(other.token))).rejects.toMatchObject({ code: 3 })
})

test('the end of a session reaches the routers of all replicas, and what depends on it', async () => {
  const identity = fakeIdentity()
  await using one = await startAccess(store.changeLog, { bus: noBus, identity })
  await using two = await startAccess(store.changeLog, { bus: noBus, identity })
  const routers = [testRouter(), testRouter()] as const
  const ended: string[][] = [[], []]
  for (const [n, access] of [one, two].entries()) {
    await access.connect(routers[n] ?? routers[0])
    access.concern.onSessionsEnded(async (ids) => void ended[n]?.push(...ids))
  }
  const made = [
    await makeSession('a', 'alice'),
    await makeSession('b', 'alice'),
    await makeSession('c', 'alice'),
  ]
  const [first, second, third] = made.map(({ id }) => id)
  const context = ownContext(AbortSignal.timeout(30_000))
  await store.changeLog.write(context, async (tx) => ({
    result: undefined,
    changes: await endSessions(tx, sql`id = ${first}`),
  }))
  const swept = await store.changeLog.db.transaction(undefined, (tx) =>
    endManySessions(tx, [second ?? '', third ?? '']),
  )
  if (swept) store.changeLog.appended(swept.position, swept.changes)
  for (const router of routers) {
    await router.until(() => endedOf(router).length >= 3)
    expect(endedOf(router).sort()).toEqual(made.map(({ token }) => token).sort())
  }
  for (const ids of ended) expect(ids.sort()).toEqual(made.map(({ id }) => id).sort())
})

const endedOf = (router: TestRouter): string[] =>
  router.ofType(edgeType.sessionRemoved).flatMap(({ body }) => SessionRemoved.decode(body).tokens)

test('what depends on ended sessions is told again after a failure', async () => {
  await using replica = await startReplica()
  const { id } = await makeSession('d', 'alice')
  const told: string[] = []
  const done = new Promise<void>((resolve) => {
    replica.access.concern.onSessionsEnded(async (ids) => {
      told.push(...ids)
      if (told.length === 1) throw new Error('the first time fails')
      resolve()
    })
  })
  await store.changeLog.write(ownContext(AbortSignal.timeout(30_000)), async (tx) => ({
    result: undefined,
    changes: await endSessions(tx, sql`id = ${id}`),
  }))
  await done
  expect(told).toEqual([id, id])
})

test('routers do not wait for what depends on sessions', async () => {
  await using replica = await startReplica()
  const router = testRouter()
  await replica.access.connect(router)
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  replica.access.concern.onSessionsEnded(() => released)
  for (const name of ['f', 'g']) {
    const { id, token } = await makeSession(name, 'alice')
    await store.changeLog.write(ownContext(AbortSignal.timeout(30_000)), async (tx) => ({
      result: undefined,
      changes: await endSessions(tx, sql`id = ${id}`),
    }))
    await router.until(() => endedOf(router).includes(token))
  }
  release()
})

test('tokens that no session has are removed from the router that asks', async () => {
  await using replica = await startReplica()
  const { token } = await makeSession('e', 'alice')
  const router = testRouter()
  const body = ValidateSessionsRequest.encode({ sessionTokens: [token, 'gone', 'never'] }).finish()
  await replica.access.receive(router, { type: edgeType.validateSessions, body })
  expect(endedOf(router).sort()).toEqual(['gone', 'never'])
  expect(removalsOf(router).map(({ ids }) => ids)).toEqual([[]])
})

test('routers list sessions by token, signed token or id, and those with the data model get ids', async () => {
  await using replica = await startReplica()
  const [lives, other] = [await makeSession('f', 'alice'), await makeSession('g', 'alice')]
  const signedOf = (id: string) => signedFor(replica, { id, apiSessionId: 'f' })
  const gone = await signedOf('gone too')
  const sessionTokens = ['gone', gone, lives.token, other.id, await signedOf(lives.id), 'eyJ.no.token']
  const body = ValidateSessionsRequest.encode({ sessionTokens }).finish()
  const [old, current] = [testRouter(), testRouter(undefined, { ...NO_FEATURES, hasDataModel: true })]
  for (const router of [old, current])
    await replica.access.receive(router, { type: edgeType.validateSessions, body })
  const tokens = ['gone', gone, 'eyJ.no.token']
  expect(removalsOf(old)).toEqual([{ tokens, ids: [] }])
  expect(removalsOf(current)).toEqual([{ tokens, ids: ['gone', 'gone too', 'eyJ.no.token'] }])
})

const removalsOf = (router: TestRouter) =>
  router.ofType(edgeType.sessionRemoved).map(({ body }) => SessionRemoved.decode(body))

test('a client that dials without a session needs its access token, its certificate, and what a session needs', async () => {
  let grants = 0
  await using replica = await startReplica(
    { 'erin wiki': ['r1'] },
    {
      async createSession({ serviceId, type, hasAccessToken }, { caller }) {
        grants++
        if (serviceId !== 'wiki' || !hasAccessToken) throw new Fault('NOT_FOUND')
        await store.changeLog.db.query(sql`
        insert into session (id, token, type, api_session_id, service_id, identity_id)
        values (${newId('cuid')}, ${randomUUID()}, ${type}, ${caller.apiSessionId}, 'wiki', ${caller.identityId})`)
        return { json: Buffer.alloc(0) }
      },
    },
  )
  const { checkDial } = replica.access.concern
  const { id } = replica.identity.bearer('erin', { id: '9', token: 'eyJ.of.erin' })
  const { token: legacy } = replica.identity.login('erin', 'one')
  const claimed = { routerId: 'r1', accessToken: 'eyJ.of.erin', identityId: 'erin', serviceId: 'wiki' }
  const dial = (members: object) => checkDial({ ...claimed, fingerprints: ['one'], ...members })
  const granted = await dial({})
  expect(granted).toMatchObject({ apiSessionId: id, identityId: 'erin', serviceId: 'wiki' })
  expect(await dial({})).toEqual(granted)
  expect(grants).toBe(1)
  const codes = [
    { accessToken: '' },
    { accessToken: 'eyJ.forged' },
    { accessToken: legacy },
    { identityId: 'frank' },
    { fingerprints: ['two'] },
    { serviceId: 'blog' },
    { routerId: 'r2' },
  ].map((members) => dial(members).catch((err: { code: number }) => err.code))
  const { invalidApiSession, invalidService, invalidEdgeRouter } = edgeErrorCode
  expect(await Promise.all(codes)).toEqual([
    ...Array.from({ length: 5 }, () => invalidApiSession),
    invalidService,
    invalidEdgeRouter,
  ])
})
