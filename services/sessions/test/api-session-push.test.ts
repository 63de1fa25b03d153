import {
  ApiSessionAdded,
  ApiSessionRemoved,
  ApiSessionUpdated,
  edgeType,
  type Message,
  RequestClientReSync,
  type RouterApiSession,
  type SyncState,
  syncHeader,
} from '@overlay/channel'
import { noBus } from '@overlay/store/change-log'
import { newId } from '@overlay/store/kind-store'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { NO_FEATURES } from '../src/domain/router-features.js'
import { openPresenceMemory } from '../src/routers/presence-memory.js'
import type { PresenceRow } from '../src/store/presence.js'
import { fakeIdentity, startAccess, type TestAccess, type TestRouter, testRouter } from './access.js'
import { startStore } from './store.js'

let store: Awaited<ReturnType<typeof startStore>>
beforeAll(async () => {
  store = await startStore()
})
afterAll(() => store[Symbol.asyncDispose]())

/** Routers without the data model do not know it. */
const noIdentity = { identityId: '' }

const stateOf = ({ headers }: Message): SyncState =>
  JSON.parse((headers.get(syncHeader.state) ?? Buffer.from('{}')).toString())
const added = (message: Message) => ApiSessionAdded.decode(message.body)
const chunksOf = (router: TestRouter) =>
  router.ofType(edgeType.apiSessionAdded).filter((message) => added(message).isFullState)
const deltasOf = (router: TestRouter) =>
  router
    .ofType(edgeType.apiSessionAdded)
    .map(added)
    .filter(({ isFullState }) => !isFullState)
    .flatMap(({ apiSessions }) => apiSessions)
const removedOf = (router: TestRouter) =>
  router.ofType(edgeType.apiSessionRemoved).flatMap(({ body }) => ApiSessionRemoved.decode(body).tokens)
const hasState =
  (router: TestRouter, count = 1) =>
  () =>
    chunksOf(router).filter((chunk) => stateOf(chunk).isLast).length === count
/** What a router has of a full state, without the session that marks its end. */
const sessionsIn = (chunks: readonly Message[]): RouterApiSession[] =>
  chunks.flatMap((chunk) => added(chunk).apiSessions).filter(({ id }) => !id.endsWith('0'.repeat(13)))

async function startReplica() {
  const identity = fakeIdentity()
  const access = await startAccess(store.changeLog, { bus: noBus, identity })
  return { identity, access, [Symbol.asyncDispose]: () => access[Symbol.asyncDispose]() }
}
async function synced(access: TestAccess, router = testRouter()): Promise<TestRouter> {
  await access.connect(router)
  await router.until(hasState(router))
  return router
}

test('a router gets all API sessions in chunks of 100, the last of which is marked', async () => {
  await using replica = await startReplica()
  const sessions = Array.from({ length: 250 }, (_, n) => replica.identity.login(`person ${n}`, `print${n}`))
  const router = await synced(replica.access)
  await router.until(() => sessionsIn(chunksOf(router)).length + deltasOf(router).length >= 250)

  const chunks = chunksOf(await synced(replica.access))
  const ids = new Set(chunks.map((chunk) => stateOf(chunk).id))
  expect(ids.size).toBe(1)
  expect(chunks.map((chunk) => stateOf(chunk).sequence)).toEqual([0, 1, 2, 3])
  expect(chunks.map((chunk) => stateOf(chunk).isLast)).toEqual([false, false, false, true])
  expect(chunks.map((chunk) => added(chunk).apiSessions.length)).toEqual([100, 100, 50, 1])
  expect(new Map(sessionsIn(chunks).map(({ id, ...session }) => [id, session]))).toEqual(
    new Map(
      sessions.map(({ id, token, fingerprints }) => [
        id,
        { token, certFingerprints: fingerprints, ...noIdentity },
      ]),
    ),
  )
})

const rowOf = (routerId: string): PresenceRow => ({
  routerId,
  linkListeners: '',
  connectedAt: new Date().toISOString(),
  features: NO_FEATURES,
  versionInfo: { version: '', revision: '', buildDate: '', os: '', arch: '' },
  hostname: '',
  supportedProtocols: {},
  syncStatus: '',
})

test('a router with the data model gets its API sessions again when it has lost another replica', async () => {
  const identity = fakeIdentity()
  const presence = openPresenceMemory(undefined)
  await using access = await startAccess(store.changeLog, { bus: noBus, identity, presence })
  const session = identity.login('somebody', 'print')
  const router = { ...testRouter(), features: { ...NO_FEATURES, hasDataModel: true, verifiesTokens: true } }
  const other = await synced(access)
  for (const { routerId } of [router, other])
    for (const replica of ['a', 'b']) presence.put(replica, rowOf(routerId))
  await synced(access, router)
  for (const { routerId } of [router, other]) presence.remove('b', routerId)
  await router.until(hasState(router, 2))
  expect(sessionsIn(chunksOf(router)).filter(({ id }) => id === session.id)).toHaveLength(2)
  expect(hasState(other)()).toBe(true)
})

test('without API sessions, too, a router gets a last chunk', async () => {
  await using replica = await startReplica()
  const router = await synced(replica.access)
  expect(chunksOf(router).map(stateOf)).toEqual([{ id: expect.any(String), isLast: true, sequence: 0 }])
  expect(sessionsIn(chunksOf(router))).toEqual([])
  expect(replica.access.synced).toEqual(new Set([router.routerId]))
})

test('routers learn of logins, other fingerprints and ends at once', async () => {
  await using replica = await startReplica()
  const { identity } = replica
  const routers = [await synced(replica.access), await synced(replica.access)]
  const session = identity.login('alice', 'one')
  for (const router of routers) await router.until(() => deltasOf(router).length > 0)
  identity.put({ ...session, fingerprints: ['one', 'two'] })
  identity.put({ ...session, fingerprints: ['one', 'two'] })
  identity.end(session.id)
  for (const router of routers) {
    await router.until(() => removedOf(router).length > 0)
    const { id, token } = session
    expect(deltasOf(router)).toEqual([{ id, token, certFingerprints: ['one'], ...noIdentity }])
    expect(
      router.ofType(edgeType.apiSessionRemoved).map(({ body }) => ApiSessionRemoved.decode(body)),
    ).toEqual([{ tokens: [token], ids: [id] }])
  }
})

test('other fingerprints are an update with the headers of a state', async () => {
  await using replica = await startReplica()
  const router = await synced(replica.access)
  const session = replica.identity.login('alice', 'one')
  await router.until(() => deltasOf(router).length > 0)
  replica.identity.put({ ...session, fingerprints: ['two'] })
  await router.until(() => router.ofType(edgeType.apiSessionUpdated).length > 0)
  const [update] = router.ofType(edgeType.apiSessionUpdated)
  const { id, token } = session
  expect(update && ApiSessionUpdated.decode(update.body)).toEqual({
    apiSessions: [{ id, token, certFingerprints: ['two'], ...noIdentity }],
  })
  expect(update?.headers.get(syncHeader.strategy)?.toString()).toBe('instant')
  expect(update?.headers.get(syncHeader.state)?.length).toBe(0)
})

test('a router gets each access token of an API session, and its end when the token or the session ends', async () => {
  await using replica = await startReplica()
  const { identity } = replica
  const [first, second] = [
    { id: '1', token: 'eyJ.first' },
    { id: '2', token: 'eyJ.second' },
  ] as const
  const router = await synced(replica.access)
  const session = identity.bearer('alice', first)
  await router.until(() => deltasOf(router).length === 1)
  identity.put({ ...session, accessTokens: [first, second] })
  await router.until(() => deltasOf(router).length === 2)
  const known = (token: string) => ({ id: session.id, token, certFingerprints: ['one'], ...noIdentity })
  expect(deltasOf(router)).toEqual([known(first.token), known(second.token)])
  expect(removedOf(router)).toEqual([])
  const later = await synced(replica.access)
  expect(sessionsIn(chunksOf(later))).toEqual([known(first.token), known(second.token)])

  const fingerprints = ['two']
  identity.put({ ...session, accessTokens: [first, second], fingerprints })
  await router.until(() => router.ofType(edgeType.apiSessionUpdated).length > 0)
  const [update] = router.ofType(edgeType.apiSessionUpdated)
  expect(update && ApiSessionUpdated.decode(update.body).apiSessions).toEqual([
    { ...known(first.token), certFingerprints: fingerprints },
    { ...known(second.token), certFingerprints: fingerprints },
  ])
  identity.put({ ...session, accessTokens: [second], fingerprints })
  await router.until(() => removedOf(router).length > 0)
  expect(removedOf(router)).toEqual([first.token])
  identity.end(session.id)
  await router.until(() => removedOf(router).includes(second.token))
})

test('routers with the data model get the identity, and no access tokens', async () => {
  await using replica = await startReplica()
  const { identity, access } = replica
  const identityId = newId('cuid')
  const first = identity.login(identityId, 'one')
  const bearer = identity.bearer(identityId, { id: '1', token: 'eyJ.first' })
  const current = () => testRouter(undefined, { ...NO_FEATURES, hasDataModel: true, verifiesTokens: true })
  const [router, old] = [await synced(access, current()), await synced(access)]
  const namesOf = (sessions: readonly RouterApiSession[]) =>
    sessions.filter(({ token }) => [first.token, 'eyJ.first'].includes(token)).map((one) => one.identityId)
  expect(namesOf(sessionsIn(chunksOf(router)))).toEqual([identityId])
  expect(namesOf(sessionsIn(chunksOf(old)))).toEqual(['', ''])

  const names = (router: TestRouter) => deltasOf(router).map((one) => `${one.token} ${one.identityId}`)
  identity.put({ ...bearer, accessTokens: [...bearer.accessTokens, { id: '2', token: 'eyJ.second' }] })
  await old.until(() => names(old).includes('eyJ.second '))
  const second = identity.login(identityId, 'one')
  identity.put({ ...second, fingerprints: ['one', 'two'] })
  identity.end(bearer.id)
  identity.end(first.id)
  const isDone = (router: TestRouter) => () =>
    removedOf(router).includes(first.token) && names(router).some((name) => name.startsWith(second.token))
  await old.until(isDone(old))
  await router.until(isDone(router))
  expect(names(old)).toContain(`${second.token} `)
  expect(names(router)).toContain(`${second.token} ${identityId}`)
  expect([...names(router), ...removedOf(router)].filter((text) => text.startsWith('ey'))).toEqual([])
  const updates = router.ofType(edgeType.apiSessionUpdated).map(({ body }) => ApiSessionUpdated.decode(body))
  for (const { apiSessions } of updates)
    for (const one of apiSessions) expect(one.identityId).toBe(identityId)
})

test('a certificate that is no longer valid is no fingerprint', async () => {
  await using replica = await startReplica()
  const session = replica.identity.login('alice', 'one')
  const validToMs = Date.now() - 1000
  replica.identity.put({ ...session, expiring: [{ fingerprint: 'over', validToMs }] })
  const later = { fingerprint: 'valid', validToMs: Date.now() + 3_600_000 }
  replica.identity.put({ ...session, expiring: [{ fingerprint: 'over', validToMs }, later] })
  const router = testRouter()
  await replica.access.connect(router)
  const prints = () =>
    [...sessionsIn(chunksOf(router)), ...deltasOf(router)].flatMap((one) => one.certFingerprints)
  await router.until(() => prints().includes('valid'))
  expect(prints()).not.toContain('over')
})

test('what changes behind a full state on its way comes again with its last chunk', async () => {
  await using replica = await startReplica()
  const { identity, access } = replica
  const sessions = Array.from({ length: 150 }, () => identity.login('alice', 'one'))
  const warm = await synced(access)
  await warm.until(() => sessionsIn(chunksOf(warm)).length + deltasOf(warm).length >= 150)

  const router = testRouter()
  const release = router.stall()
  await access.connect(router)
  await router.until(() => chunksOf(router).length === 1)
  const [first, second] = sessionsIn(chunksOf(router))
  const before = sessions.find(({ id }) => id === first?.id)
  const ended = sessions.find(({ id }) => id === second?.id)
  if (!before || !ended) throw new Error('no session')
  const unsent = sessions.find(({ id }) => !sessionsIn(chunksOf(router)).some((one) => one.id === id))
  identity.put({ ...before, fingerprints: ['two'] })
  identity.end(ended.id)
  identity.end(unsent?.id ?? '')
  await router.until(() => removedOf(router).length === 2)
  release()
  await router.until(hasState(router))
  const last = chunksOf(router).at(-1)
  expect(sessionsIn(last ? [last] : [])).toEqual([
    { id: before.id, token: before.token, certFingerprints: ['two'], ...noIdentity },
  ])
  expect(sessionsIn(chunksOf(router)).map(({ id }) => id)).not.toContain(unsent?.id)
})

test('a router that takes nothing delays no other router', async () => {
  await using replica = await startReplica()
  for (let n = 0; n < 150; n++) replica.identity.login('alice', 'one')
  const warm = await synced(replica.access)
  await warm.until(() => sessionsIn(chunksOf(warm)).length + deltasOf(warm).length >= 150)
  const stalled = testRouter()
  stalled.stall()
  await replica.access.connect(stalled)
  const router = await synced(replica.access)
  const session = replica.identity.login('bob', 'one')
  await router.until(() => deltasOf(router).some(({ id }) => id === session.id))
  expect(chunksOf(stalled).some((chunk) => stateOf(chunk).isLast)).toBe(false)
})

test('after changes may have been missed, routers get a newer full state, and ends', async () => {
  await using replica = await startReplica()
  const { identity, access } = replica
  const kept = identity.login('alice', 'one')
  const lost = identity.login('bob', 'one')
  const router = await synced(access)
  await router.until(() => sessionsIn(chunksOf(router)).length + deltasOf(router).length >= 2)
  const restored = { ...kept, id: newId('cuid'), token: 'of the backup' }
  identity.restore(kept, restored)
  await router.until(hasState(router, 2))
  const states = chunksOf(router).map(stateOf)
  const [first, last] = [states[0], states.at(-1)]
  expect((last?.id ?? '') > (first?.id ?? '')).toBe(true)
  const ofLast = chunksOf(router).filter((chunk) => stateOf(chunk).id === last?.id)
  expect(new Set(sessionsIn(ofLast).map(({ id }) => id))).toEqual(new Set([kept.id, restored.id]))
  expect(removedOf(router)).toContain(lost.token)
})

test('a router that connects before the first load gets its state after it', async () => {
  const identity = fakeIdentity()
  identity.setAway(true)
  await using access = await startAccess(store.changeLog, { bus: noBus, identity })
  const router = testRouter()
  await access.connect(router)
  const session = identity.login('alice', 'one')
  identity.setAway(false)
  await router.until(hasState(router))
  expect(sessionsIn(chunksOf(router)).map(({ id }) => id)).toEqual([session.id])
})

test('a router that asks for all API sessions again and again does not get them at once', async () => {
  await using replica = await startReplica()
  const router = await synced(replica.access)
  const body = RequestClientReSync.encode({ reason: 'because' }).finish()
  for (const _ of [1, 2, 3])
    await replica.access.receive(router, { type: edgeType.requestClientReSync, body })
  const session = replica.identity.login('alice', 'one')
  await router.until(() => deltasOf(router).some(({ id }) => id === session.id))
  expect(chunksOf(router)).toHaveLength(1)
})
