import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  ApiSessionAdded,
  ApiSessionHeartbeat,
  ApiSessionRemoved,
  ApiSessionUpdated,
  edgeType,
  type Message,
  type SyncState,
  syncHeader,
} from '@overlay/channel'
import { noBus } from '@overlay/store/change-log'
import { newId } from '@overlay/store/kind-store'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openPush } from '../src/access/push-api-sessions.js'
import type { ApiSession } from '../src/domain/api-session.js'
import { fakeGrants, fakeIdentity, startAccess, type TestRouter, testRouter } from './access.js'
import { log, startStore } from './store.js'

let store: Awaited<ReturnType<typeof startStore>>
beforeAll(async () => {
  store = await startStore()
})
afterAll(() => store[Symbol.asyncDispose]())

/** The fingerprints that a router has of each API session, by token, after the messages that it has received. */
function knownTo({ received }: TestRouter): Map<string, readonly string[]> {
  const known = new Map<string, { id: string; prints: readonly string[] }>()
  let state = { id: '', tokens: new Set<string>(), newest: '' }
  const add = (message: Message): void => {
    const { isFullState, apiSessions } = ApiSessionAdded.decode(message.body)
    for (const { token, id, certFingerprints } of apiSessions)
      known.set(token, { id, prints: certFingerprints })
    if (!isFullState) return
    const { id, isLast } = JSON.parse(message.headers.get(syncHeader.state)?.toString() ?? '') as SyncState
    if (state.id !== id) state = { id, tokens: new Set(), newest: '' }
    for (const one of apiSessions) {
      state.tokens.add(one.token)
      if (one.id > state.newest) state.newest = one.id
    }
    if (!isLast) return
    for (const [token, one] of known)
      if (one.id <= state.newest && !state.tokens.has(token)) known.delete(token)
  }
  for (const message of received) {
    if (message.type === edgeType.apiSessionAdded) add(message)
    if (message.type === edgeType.apiSessionUpdated)
      for (const { token, id, certFingerprints } of ApiSessionUpdated.decode(message.body).apiSessions)
        known.set(token, { id, prints: certFingerprints })
    if (message.type === edgeType.apiSessionRemoved)
      for (const token of ApiSessionRemoved.decode(message.body).tokens) known.delete(token)
  }
  return new Map([...known].flatMap(([token, { prints }]) => (prints.length > 0 ? [[token, prints]] : [])))
}
const tokensOf = (router: TestRouter): string[] => [...knownTo(router).keys()].sort()
/** Whether a token was in any message to the router. */
const hasSeen = ({ received }: TestRouter, token: string): boolean =>
  received.some(({ body }) => Buffer.from(body).includes(token))

/** Alice is granted the first router, Bob the second. */
async function startReplica() {
  const routers = [testRouter(), testRouter()] as const
  const [one, two] = [routers[0].routerId, routers[1].routerId]
  const granted: Readonly<Record<string, readonly string[]>> = { alice: [one], bob: [two] }
  const grants = fakeGrants((identityId) => granted[identityId] ?? [])
  const identity = fakeIdentity()
  const access = await startAccess(store.changeLog, { bus: noBus, identity, grants })
  for (const router of routers) {
    await access.connect(router)
    await router.until(() => router.ofType(edgeType.apiSessionAdded).length > 0)
  }
  return { routers, granted, grants, identity, access, [Symbol.asyncDispose]: access[Symbol.asyncDispose] }
}

test('a router gets the API sessions of identities that policies grant it, and no other token', async () => {
  await using replica = await startReplica()
  const { identity, routers } = replica
  const admin = identity.login('admin', 'certificate')
  const [alice, bob] = [identity.login('alice', 'a'), identity.login('bob', 'b')]
  const bearer = identity.bearer('alice', { id: '1', token: 'eyJ.alice' })
  const [first, second] = routers
  await first.until(() => tokensOf(first).length === 2)
  await second.until(() => tokensOf(second).length === 1)
  expect(tokensOf(first)).toEqual([alice.token, 'eyJ.alice'].sort())
  expect(tokensOf(second)).toEqual([bob.token])
  for (const { id } of [admin, alice, bob, bearer]) identity.end(id)
  await first.until(() => tokensOf(first).length === 0)
  await second.until(() => tokensOf(second).length === 0)
  for (const router of routers) expect(hasSeen(router, admin.token)).toBe(false)
  expect(hasSeen(first, bob.token)).toBe(false)
  expect(hasSeen(second, alice.token)).toBe(false)
})

test('an API session without a certificate goes to no router until it gets one, and policy is not asked', async () => {
  await using replica = await startReplica()
  const { identity, grants, routers } = replica
  const session = identity.login('alice')
  const marker = identity.login('bob', 'b')
  await routers[1].until(() => tokensOf(routers[1]).includes(marker.token))
  expect(hasSeen(routers[0], session.token)).toBe(false)
  expect(grants.asked()).toBe(1)
  identity.put({ ...session, fingerprints: ['late'] })
  await routers[0].until(() => tokensOf(routers[0]).includes(session.token))
  expect(knownTo(routers[0]).get(session.token)).toEqual(['late'])
})

test('an API session whose certificate is over stays at its routers without it, and goes to no other', async () => {
  await using replica = await startReplica()
  const { identity, grants, granted, routers } = replica
  const [first, second] = routers
  const session = identity.login('alice', 'a')
  await first.until(() => tokensOf(first).includes(session.token))
  identity.put({ ...session, fingerprints: [] })
  await first.until(() => tokensOf(first).length === 0)
  expect(first.ofType(edgeType.apiSessionRemoved)).toEqual([])
  const alice = [first.routerId, second.routerId]
  grants.grant((id) => (id === 'alice' ? alice : (granted[id] ?? [])), ['alice'])
  const marker = identity.login('bob', 'b')
  await second.until(() => tokensOf(second).includes(marker.token))
  expect(hasSeen(second, session.token)).toBe(false)
  identity.put({ ...session, fingerprints: ['later'] })
  for (const router of routers) await router.until(() => tokensOf(router).includes(session.token))
})

test('routers get and lose API sessions as policies grant and refuse them', async () => {
  await using replica = await startReplica()
  const { identity, grants, granted, routers } = replica
  const [first, second] = routers
  const alice = identity.login('alice', 'a')
  await first.until(() => tokensOf(first).includes(alice.token))
  const all = { ...granted, alice: [first.routerId, second.routerId] }
  grants.grant((id) => all[id as 'alice'] ?? [], ['alice'])
  await second.until(() => tokensOf(second).includes(alice.token))
  expect(tokensOf(first)).toEqual([alice.token])
  grants.grant((id) => (id === 'alice' ? [second.routerId] : []))
  await first.until(() => tokensOf(first).length === 0)
  expect(tokensOf(second)).toEqual([alice.token])
})

test('changes of policies for everybody move the API sessions of many identities, each time', async () => {
  await using replica = await startReplica()
  const { identity, grants, routers } = replica
  const [first, second] = routers
  grants.grant(() => [first.routerId])
  const people = Array.from({ length: 450 }, (_, i) => identity.login(`person-${i}`, 'a'))
  const tokens = people.map(({ token }) => token).sort()
  await first.until(() => tokensOf(first).length === tokens.length)
  grants.grant(() => [second.routerId])
  await nextTurn() // policy is being asked
  grants.grant(() => [first.routerId, second.routerId])
  await second.until(() => tokensOf(second).length === tokens.length)
  await first.until(() => tokensOf(first).length === tokens.length)
  grants.grant(() => [second.routerId])
  await first.until(() => tokensOf(first).length === 0)
  expect(tokensOf(second)).toEqual(tokens)
})

test('a login is sent by the policies of its time, before the stream of policy names their change', async () => {
  await using replica = await startReplica()
  const { identity, grants, routers } = replica
  const [first, second] = routers
  const before = identity.login('alice', 'a')
  await first.until(() => tokensOf(first).includes(before.token))
  grants.grantUnseen(() => [second.routerId])
  const after = identity.login('alice', 'a')
  await second.until(() => tokensOf(second).length === 2)
  await first.until(() => tokensOf(first).length === 0)
  expect(hasSeen(first, after.token)).toBe(false)
})

test('while policy does not answer nothing is sent, and all afterwards', async () => {
  await using replica = await startReplica()
  const { identity, grants, granted, routers } = replica
  const [first] = routers
  grants.setAway(true)
  const alice = identity.login('alice', 'a')
  while (grants.refused() === 0) await nextTurn()
  const again = testRouter(first.routerId)
  await replica.access.connect(again)
  while (grants.refused() < 6) await nextTurn() // longer than a full state waits for anything else
  for (const router of [first, again]) expect(hasSeen(router, alice.token)).toBe(false)
  expect(replica.access.synced.has(first.routerId)).toBe(false)
  grants.setAway(false)
  grants.grant((id) => granted[id] ?? [])
  for (const router of [first, again]) await router.until(() => tokensOf(router).includes(alice.token))
  while (!replica.access.synced.has(first.routerId)) await nextTurn()
})

test('a full state has no API session that policy has not been asked about since its login', async () => {
  await using replica = await startReplica()
  const { identity, grants, routers, access } = replica
  const [first, second] = routers
  const before = identity.login('alice', 'a')
  await first.until(() => tokensOf(first).includes(before.token))
  grants.grantUnseen(() => [second.routerId])
  grants.setAway(true)
  const after = identity.login('alice', 'a')
  while (grants.refused() === 0) await nextTurn()
  access.synced.clear()
  const again = testRouter(first.routerId)
  await access.connect(again)
  while (!access.synced.has(first.routerId)) await nextTurn()
  expect(tokensOf(again)).toEqual([before.token])
  grants.setAway(false)
  await second.until(() => tokensOf(second).length === 2)
  await again.until(() => tokensOf(again).length === 0)
  for (const router of [first, again]) expect(hasSeen(router, after.token)).toBe(false)
})

test('while policy is of an earlier release every router gets API sessions with certificates', async () => {
  await using replica = await startReplica()
  const { identity, grants, routers } = replica
  grants.setOld(true)
  const [bound, unbound] = [identity.login('alice', 'a'), identity.login('alice')]
  for (const router of routers) await router.until(() => tokensOf(router).includes(bound.token))
  for (const router of routers) expect(hasSeen(router, unbound.token)).toBe(false)
  grants.setOld(false)
  await routers[1].until(() => tokensOf(routers[1]).length === 0)
  expect(tokensOf(routers[0])).toEqual([bound.token])
})

test('a heartbeat keeps only API sessions that the router may have, and its own', async () => {
  await using replica = await startReplica()
  const { identity, routers, access } = replica
  const [first, second] = routers
  const alice = identity.login('alice', 'a')
  const own = identity.login(second.routerId)
  await first.until(() => tokensOf(first).includes(alice.token))
  const body = ApiSessionHeartbeat.encode({ tokens: [alice.token, own.token ?? ''] }).finish()
  await access.receive(second, { type: edgeType.apiSessionHeartbeat, body })
  const removed = second.ofType(edgeType.apiSessionRemoved).map((one) => ApiSessionRemoved.decode(one.body))
  expect(removed.flatMap(({ tokens }) => tokens)).toEqual([alice.token])
  while (access.marked.length === 0) await nextTurn()
  expect(access.marked).toEqual([own.id])
})

const turns = (count: number) => async (): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await nextTurn()
}

const identityId = fc.constantFrom('alice', 'bob')
const routerIds = ['one', 'two', 'three']
const routerId = fc.constantFrom(...routerIds)
const prints = fc.constantFrom('', 'a', 'b')
const nth = fc.nat(5)
const routers = fc.subarray(routerIds)
const isSeen = fc.boolean()
const kind = <K extends string>(name: K) => fc.constant(name)
const change = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: kind('login'), identityId, prints }) },
  fc.record({ kind: kind('update'), nth, prints }),
  fc.record({ kind: kind('logout'), nth }),
  { weight: 2, arbitrary: fc.record({ kind: kind('connect'), routerId }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('grant'), identityId, routers, isSeen }) },
  fc.record({ kind: kind('disconnect'), routerId }),
  fc.record({ kind: kind('away'), now: fc.boolean() }),
  fc.record({ kind: kind('reload') }),
)
/** What happens, and how many turns later the next change follows. */
const steps = fc.array(fc.tuple(change, fc.nat(12)), {
  ...{ minLength: 10, maxLength: 50, size: 'max' },
})

test('after any changes each router has exactly the API sessions that it could admit', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
  try {
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        const granted = new Map<string, readonly string[]>()
        /** Pairs of identity and router that were granted at any time. */
        const ever = new Set<string>()
        const bound = new Set<string>() // tokens that had a certificate
        const unseen = new Set<string>()
        const sessions: ApiSession[] = []
        const routers = new Map<string, TestRouter>()
        const former: TestRouter[] = []
        const grants = fakeGrants((id) => granted.get(id) ?? [])
        let number = 0
        await using push = openPush({
          ...{ log, grantWatch: grants.grantWatch, policyHead: grants.policyHead },
          policy: grants,
          sessions: () => ({ isLoaded: () => true, catchUp: turns(5) }),
          sync: { started: () => undefined, done: () => undefined },
          pushed: () => undefined,
        })
        const applied = (): void => push.applied({ timeline: 't', number: ++number })
        const disconnect = (routerId: string): void => {
          const router = routers.get(routerId)
          if (!router) return
          router.channel.close('gone')
          push.disconnect(router)
          routers.delete(routerId)
          former.push(router)
        }
        for (const [one, count] of sequence) {
          if (one.kind === 'login') {
            const token = `token-${number}-`
            const session = {
              ...{ id: newId('cuid'), token, tokenId: undefined },
              ...{ identityId: one.identityId, fingerprints: one.prints },
            }
            if (one.prints) bound.add(token)
            sessions.push(session)
            push.added(session)
            applied()
          } else if (one.kind === 'update') {
            const session = sessions[one.nth % sessions.length]
            if (!session || session.fingerprints === one.prints) continue
            session.fingerprints = one.prints
            if (one.prints) bound.add(session.token)
            push.updated(session)
            applied()
          } else if (one.kind === 'logout') {
            const [session] = sessions.splice(one.nth % Math.max(sessions.length, 1), 1)
            if (!session) continue
            push.removed(session)
            applied()
          } else if (one.kind === 'grant') {
            granted.set(one.identityId, one.routers)
            for (const id of one.routers) ever.add(`${one.identityId} ${id}`)
            if (one.isSeen) grants.grant((id) => granted.get(id) ?? [], [one.identityId])
            else grants.grantUnseen((id) => granted.get(id) ?? [])
            if (one.isSeen) unseen.delete(one.identityId)
            else unseen.add(one.identityId)
          } else if (one.kind === 'connect') {
            disconnect(one.routerId)
            const router = testRouter(one.routerId)
            routers.set(one.routerId, router)
            push.connect(router)
          } else if (one.kind === 'disconnect') disconnect(one.routerId)
          else if (one.kind === 'away') grants.setAway(one.now)
          else if (one.kind === 'reload') {
            push.reloaded()
            applied()
          }
          await turns(count)()
        }
        const signal = AbortSignal.timeout(10_000) // attempts to ask policy are some seconds apart
        grants.setAway(false)
        grants.announce([...unseen])
        const expected = (routerId: string): string[] =>
          sessions
            .filter(
              ({ identityId, fingerprints }) => fingerprints && granted.get(identityId)?.includes(routerId),
            )
            .map(({ token }) => token)
            .sort()
        const isSettled = (): boolean =>
          [...routers].every(([routerId, router]) => String(tokensOf(router)) === String(expected(routerId)))
        while (!isSettled()) {
          await nextTurn()
          await vi.advanceTimersByTimeAsync(100)
          if (signal.aborted) break
        }
        await vi.advanceTimersByTimeAsync(10_000) // removals are repeated
        await nextTurn()
        expect([...routers].map(([id, router]) => [id, tokensOf(router)])).toEqual(
          [...routers.keys()].map((id) => [id, expected(id)]),
        )
        for (const router of [...former, ...routers.values()]) {
          const added = router
            .ofType(edgeType.apiSessionAdded)
            .flatMap(({ body }) => ApiSessionAdded.decode(body).apiSessions)
          const withoutPrints = added.filter(({ certFingerprints }) => certFingerprints.length === 0)
          expect(withoutPrints.filter(({ id }) => !id.endsWith('0'.repeat(13)))).toEqual([])
          for (const { identityId, token } of sessions)
            if (hasSeen(router, token))
              expect([token, bound.has(token), ever.has(`${identityId} ${router.routerId}`)]).toEqual([
                token,
                true,
                true,
              ])
        }
      }),
      { numRuns: 100 },
    )
  } finally {
    vi.useRealTimers()
  }
})
