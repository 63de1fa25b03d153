import { randomUUID } from 'node:crypto'
import { ApiSessionRemoved, ConnectEvents, edgeType } from '@overlay/channel'
import type { CredentialsPushed } from '@overlay/rpc'
import { noBus } from '@overlay/store/change-log'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectedIdentities } from '../src/store/identity-connection.js'
import {
  fakeGrants,
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

async function startReplica(more: Partial<Pick<TestAccessOptions, 'onReport' | 'grants'>> = {}) {
  const identity = fakeIdentity()
  const access = await startAccess(store.changeLog, { bus: noBus, identity, ...more })
  return { identity, access, [Symbol.asyncDispose]: () => access[Symbol.asyncDispose]() }
}

const removedOf = (router: TestRouter): string[] =>
  router.ofType(edgeType.apiSessionRemoved).flatMap(({ body }) => ApiSessionRemoved.decode(body).tokens)

test('a heartbeat keeps API sessions, connects their identities, and ends unknown tokens', async () => {
  const router = testRouter()
  const name = randomUUID()
  const marked: string[] = []
  {
    await using replica = await startReplica()
    const { id, token } = replica.identity.login(name)
    await replica.access.receive(router, heartbeat(token, 'unknown'))
    while (replica.access.marked.length === 0) await new Promise(setImmediate)
    marked.push(...replica.access.marked)
    expect(marked).toEqual([id])
    expect(replica.access.connected).toEqual([name])
  }
  expect(removedOf(router)).toEqual(['unknown'])
  expect(await connectedIdentities(store.changeLog.db, [name])).toEqual(new Set([name]))
})

const connects = (fullState: boolean, events: Readonly<Record<string, boolean>>) => ({
  type: edgeType.connectEvents,
  body: ConnectEvents.encode({
    events: Object.entries(events).map(([identityId, isConnected]) => ({
      ...{ identityId, isConnected },
      connectTimes: isConnected
        ? [{ connectTime: 1000n, srcAddr: '10.0.0.2:7', dstAddr: '10.0.0.1:3022' }]
        : [],
    })),
    fullState,
  }).finish(),
})

test('identities that a router reports as connected are, until it reports that they have left', async () => {
  const grants = fakeGrants((identityId) => (identityId === 'mallory' ? ['r2'] : ['r1']))
  await using replica = await startReplica({ grants })
  const router = testRouter('r1')
  const { access, identity } = replica
  const logins = ['alice', 'bob', 'mallory'].map((name) => identity.login(name, 'one'))
  await access.connect(router)
  const { apiSessions } = access.concern
  await expect
    .poll(() => logins.every(({ id }) => apiSessions.byId(id) && access.synced.has('r1')))
    .toBe(true)
  const { connectedIdentities: reported } = access.concern
  await access.receive(router, connects(true, { alice: true, mallory: true, nobody: true }))
  await access.receive(router, connects(false, { bob: true, nobody: false }))
  await expect.poll(() => access.connected.toSorted()).toEqual(['alice', 'bob'])
  expect([...(reported.of('r1') ?? [])]).toEqual(['alice', 'mallory', 'bob'])
  expect(access.events).toEqual([
    {
      ...{ namespace: 'connect', event_src_id: 'c1', timestamp: '1970-01-01T00:00:01.000Z' },
      ...{ src_type: 'identity', src_id: 'bob', src_addr: '10.0.0.2:7' },
      ...{ dst_type: 'router', dst_id: 'r1', dst_addr: '10.0.0.1:3022' },
    },
  ])
  await access.receive(router, connects(true, { bob: true }))
  expect([...(reported.of('r1') ?? [])]).toEqual(['bob'])
  await access.concern.disconnected?.(router)
  expect(reported.of('r1')).toBeUndefined()
})

test('connections that identity does not take are reported again, and uses are marked all the same', async () => {
  let reports = 0
  await using replica = await startReplica({
    async onReport() {
      reports += 1
      if (reports === 1) throw new Error('identity is away')
    },
  })
  const { id, token } = replica.identity.login('alice')
  await replica.access.receive(testRouter(), heartbeat(token))
  while (replica.access.connected.length === 0) await new Promise(setImmediate)
  expect(replica.access.connected).toEqual(['alice'])
  expect(replica.access.marked).toEqual([id])
  expect(reports).toBe(2)
})

test('a heartbeat that names an access token keeps its API session and the token', async () => {
  await using replica = await startReplica()
  const [old, current] = [
    { id: '7', token: 'eyJ.old' },
    { id: '8', token: 'eyJ.current' },
  ] as const
  const { id } = replica.identity.bearer('alice', old, current)
  await replica.access.receive(testRouter(), heartbeat(old.token))
  const { marked, markedTokens } = replica.access
  while (markedTokens.length === 0) await new Promise(setImmediate)
  expect([marked, markedTokens]).toEqual([[id], [old.id]])
})

test('no token is unknown while identity does not answer', async () => {
  await using replica = await startReplica()
  const router = testRouter()
  await replica.access.receive(router, heartbeat('first'))
  expect(removedOf(router)).toEqual(['first'])
  replica.identity.setAway(true)
  await replica.access.receive(router, heartbeat('second'))
  expect(removedOf(router)).toEqual(['first'])
})

test('a replica with routers reports how far it has pushed', async () => {
  const identity = fakeIdentity()
  const reports: CredentialsPushed[] = []
  const bus = {
    ...noBus,
    publish: (_subject: string, message: object) => void reports.push(message as never),
  }
  {
    await using access = await startAccess(store.changeLog, { bus, identity })
    const router = testRouter()
    await access.connect(router)
    identity.login('alice', 'one')
    identity.login('bob', 'one')
    await router.until(() => router.ofType(edgeType.apiSessionAdded).length > 1)
    while (!reports.some(({ position }) => position.number === 2)) await new Promise(setImmediate)
    expect(reports.at(-1)).toMatchObject({ routers: 1 })
  }
  expect(reports.at(-1)).toMatchObject({ routers: 0 })
})
