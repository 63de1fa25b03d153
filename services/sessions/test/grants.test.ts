import { randomUUID } from 'node:crypto'
import { openAlarm } from '@overlay/process/async'
import {
  type Context,
  Fault,
  type HeaderChanges,
  type Methods,
  ownContext,
  type PolicyServiceService,
  type Position,
  type Positions,
} from '@overlay/rpc'
import { type ChangeLog, writeChanges } from '@overlay/store/change-log'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { openGrants } from '../src/grants/grants.js'
import { openHeldSessions } from '../src/grants/held-sessions.js'
import { watchGrants } from '../src/grants/watch-grants.js'
import { createSession } from '../src/methods/create-session.js'
import type { SessionRow } from '../src/store/insert-session.js'
import { recordRevocations } from '../src/store/revocation.js'
import { endSessions } from '../src/store/session.js'
import { log, startStore } from './store.js'

const timeline = randomUUID()
const at = (number: number): Position => ({ timeline, number })
const all = (number: number): Positions => ({
  identity: at(number),
  policy: at(number),
  sessions: at(number),
})
const { signal: never } = new AbortController()

/** Policy as it answers and announces. */
function fakePolicy() {
  const moved = openAlarm()
  let sent: HeaderChanges[] = []
  let epoch = 0
  const world = {
    position: 5,
    isAllowed: true,
    lasts: true,
    /** In place of the positions of an answer. */
    judged: undefined as Positions | undefined,
    /** An answer is older than the stream. */
    isBehind: false,
    /** What an answer is to wait for. */
    answering: Promise.resolve(),
    asked: [] as { identityId: string; serviceId: string; positions: Positions }[],
    announce(number: number, identityIds: string[], more: Partial<HeaderChanges> = {}): void {
      const message = {
        positions: all(number),
        identityIds,
        all: false,
        grants: true,
        ageMs: 0,
        routers: true,
      }
      sent.push({ ...message, ...more })
      moved.ring()
    },
    /** Ends the stream: the next one begins with these positions. */
    interrupt(number: number): void {
      epoch++
      sent = []
      world.announce(number, [])
    },
  }
  const calls: Pick<Methods<PolicyServiceService>, 'authorize' | 'watchHeaders'> = {
    async authorize({ identityId, serviceId }, { positions }) {
      world.asked.push({ identityId, serviceId, positions })
      const { isAllowed } = world
      const numbers = Object.values(positions).map(({ number }) => number)
      const judged = world.judged ?? all(world.isBehind ? 4 : Math.max(world.position, ...numbers))
      await world.answering
      if (!isAllowed) throw new Fault('NOT_FOUND', `service with id ${serviceId} not found`)
      return {
        ...{ routerIds: ['r'], policyIds: ['grants'], serviceName: `the ${serviceId}`, positions: judged },
        lasts: world.lasts,
        postureAtRouters: false,
      }
    },
    async *watchHeaders(_request, { signal }) {
      const own = epoch
      let next = 0
      let last: HeaderChanges | undefined
      while (!signal.aborted && own === epoch) {
        const message = sent[next]
        if (message) {
          next++
          last = message
          yield message
        } else {
          await moved.sleep(signal, 500)
          if (last && own === epoch) yield { ...last, identityIds: [], all: false } // a sign of life
        }
      }
    },
  }
  world.announce(5, [])
  return { world, calls }
}

/** One replica: real rows and change log, grants and sessions in memory. */
async function startReplica(
  changeLog: ChangeLog,
  { calls }: Pick<ReturnType<typeof fakePolicy>, 'calls'>,
  maxBytes = 1 << 20,
) {
  const watch = watchGrants(calls, log)
  const grants = openGrants(calls, watch, maxBytes)
  const held = await openHeldSessions(changeLog, log)
  let identityAsked = 0
  const create = createSession({
    changeLog,
    grants,
    held,
    clientRouters: { of: () => [], evaluating: () => [], lastFeaturesOf: () => [] },
    clientToken: ({ token }) => token,
    identity: {
      async checkApiSession() {
        identityAsked++
        return { position: at(100) }
      },
    },
  })
  return {
    ...{ watch, grants, held },
    identityAsked: () => identityAsked,
    async create(
      serviceId: string,
      positions: Positions = {},
      who = 'alice',
      apiSessionId = `as ${who}`,
      apiSessionAt = at(5),
    ) {
      const context: Context = {
        ...ownContext(AbortSignal.timeout(30_000)),
        caller: { identityId: who, identityName: who, apiSessionId, isAdmin: false, configTypes: [] },
        positions,
      }
      const { json } = await create(
        { serviceId, type: 'Dial', tags: Buffer.from('{}'), apiSessionAt, hasAccessToken: false },
        context,
      )
      return JSON.parse(json.toString()) as {
        readonly id: string
        readonly service: { readonly name: string }
      }
    },
    async [Symbol.asyncDispose]() {
      await watch[Symbol.asyncDispose]()
      await held[Symbol.asyncDispose]()
    },
  }
}

async function start(maxBytes?: number) {
  const store = await startStore()
  const { changeLog } = store
  const { db } = changeLog
  const follow = async (number: number) => {
    for (const schema of ['identity', 'policy'])
      await db.query(sql`
        insert into followed (schema, timeline, number) values (${schema}, ${timeline}, ${number})
            on conflict (schema) do update set number = excluded.number`)
  }
  await follow(5)
  const policy = fakePolicy()
  const replica = await startReplica(changeLog, policy, maxBytes)
  await expect.poll(() => replica.watch.isFresh()).toBe(true)
  return {
    ...{ db, changeLog, replica, follow, world: policy.world, calls: policy.calls },
    asked: () => policy.world.asked.length,
    reached: (number: number) =>
      expect.poll(() => replica.watch.positions().policy?.number, { timeout: 30_000 }).toBe(number),
    count: async () => (await db.query(sql`select from session`)).rowCount,
    end: (id: string) => writeChanges(changeLog, ownContext(never), (tx) => endSessions(tx, sql`id = ${id}`)),
    async [Symbol.asyncDispose]() {
      await replica[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

test('policy is asked once for each service of an identity', async () => {
  await using t = await start()
  for (const service of ['wiki', 'blog', 'chat', 'wiki', 'blog']) await t.replica.create(service)
  await t.replica.create('chat', {}, 'alice', 'another API session')
  expect(t.world.asked.map(({ serviceId }) => serviceId)).toEqual(['wiki', 'blog', 'chat'])
  expect([await t.count(), t.replica.identityAsked()]).toEqual([4, 0])
})

test('a session that exists is answered without the database', async () => {
  await using t = await start()
  const first = await t.replica.create('wiki')
  await t.db.query(sql`update session set token = 'another'`)
  expect(await t.replica.create('wiki')).toEqual(first)
})

test('a grant does not count when policy names its identity, and policy decides again', async () => {
  await using t = await start()
  await t.replica.create('wiki')
  t.world.isAllowed = false
  t.world.announce(6, ['bob'])
  await t.reached(6)
  await t.replica.create('wiki')
  t.world.announce(7, ['alice'])
  await t.reached(7)
  await expect(t.replica.create('wiki')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test.each([
  ['names all identities', { all: true }],
  ['has been stale for long', { ageMs: 60_000 }],
])('a grant does not count while the stream of policy %s', async (_, more) => {
  await using t = await start()
  await t.replica.create('wiki')
  t.world.announce(6, [], more)
  await t.reached(6)
  if ('ageMs' in more) await expect.poll(() => t.replica.watch.isFresh(), { timeout: 30_000 }).toBe(false)
  await t.replica.create('wiki')
  expect(t.asked()).toBe(2)
})

test('what an interrupted stream did not announce does not count', async () => {
  await using t = await start()
  await t.replica.create('wiki')
  t.world.interrupt(8)
  await t.reached(8)
  await t.replica.create('wiki')
  expect(t.asked()).toBe(2)
})

test('a grant that depends on time or on the API session is not kept', async () => {
  await using t = await start()
  t.world.lasts = false
  await t.replica.create('wiki')
  await t.replica.create('wiki')
  expect(t.asked()).toBe(2)
})

test('an answer that a change of its identity overtakes serves one create', async () => {
  await using t = await start()
  let answer = (): void => undefined
  t.world.answering = new Promise((resolve) => {
    answer = resolve
  })
  const creating = t.replica.create('wiki')
  await expect.poll(t.asked).toBe(1)
  t.world.announce(6, ['alice'])
  await t.reached(6)
  answer()
  await creating
  await t.replica.create('wiki')
  expect(t.asked()).toBe(2)
})

test('an answer of a replica of policy that is behind the stream serves one create', async () => {
  await using t = await start()
  t.world.isBehind = true
  await t.replica.create('wiki')
  t.world.isBehind = false
  await t.replica.create('wiki')
  expect(t.asked()).toBe(2)
})

test('logins outdate no grant; policy is asked as of the login', async () => {
  await using t = await start()
  await t.replica.create('wiki', {}, 'alice', 'as1', at(50))
  expect(t.world.asked[0]?.positions).toMatchObject({ identity: at(50) })
  await t.replica.create('wiki', {}, 'alice', 'as2', at(60))
  expect([t.asked(), t.replica.identityAsked()]).toEqual([1, 0])
})

test('policy is asked as of what the stream has announced', async () => {
  await using t = await start()
  t.world.announce(9, [])
  await t.reached(9)
  await t.replica.create('wiki')
  expect(t.world.asked[0]?.positions).toMatchObject({ identity: at(9), policy: at(9), sessions: at(9) })
})

test.each(['identity', 'policy', 'sessions'])(
  "a create after its caller's write to %s uses no grant from before it",
  async (schema) => {
    await using t = await start()
    await t.replica.create('wiki')
    const written = { [schema]: at(6) }
    await t.replica.create('wiki', written)
    expect(t.asked()).toBe(2)
    await t.replica.create('wiki', written) // the second answer is as of the write
    expect(t.asked()).toBe(2)
  },
)

test('grant and stream are not mixed: one of them has reached all positions', async () => {
  await using t = await start()
  t.world.judged = { ...all(5), identity: at(7) }
  await t.replica.create('wiki')
  t.world.announce(5, [], { positions: { ...all(5), policy: at(6) } })
  await t.reached(6)
  await t.replica.create('wiki', { policy: at(6) })
  await t.replica.create('wiki', { identity: at(7) })
  expect(t.asked()).toBe(1)
  await t.replica.create('wiki', { identity: at(7), policy: at(6) })
  expect(t.asked()).toBe(2)
})

test('a revocation that is recorded between the grant and the insert is seen by the insert', async () => {
  await using t = await start()
  await t.replica.create('wiki')
  await t.follow(7)
  await t.db.transaction(undefined, (tx) =>
    recordRevocations(tx, 'policy', at(7), [{ kind: 'identity', id: 'alice', number: 7, isPending: false }]),
  )
  t.world.isAllowed = false // the stream has not announced it yet
  await expect(t.replica.create('wiki', {}, 'alice', 'another API session')).rejects.toMatchObject({
    code: 'NOT_FOUND',
  })
  expect([t.asked(), t.replica.identityAsked(), await t.count()]).toEqual([2, 0, 1])
})

test('a revocation that this replica records ends its older grants before the stream does', async () => {
  await using t = await start()
  await t.replica.create('wiki')
  t.replica.grants.revoked('policy', at(7))
  t.world.isAllowed = false
  await expect(t.replica.create('wiki')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('a session that was ended is created again, and the new one is answered from then on', async () => {
  await using t = await start()
  const first = await t.replica.create('wiki')
  const position = await t.end(first.id)
  const written = position ? { sessions: position } : {}
  const second = await t.replica.create('wiki', written)
  expect(second.id).not.toBe(first.id)
  await expect.poll(() => t.replica.create('wiki')).toEqual(second)
})

test('a session that another replica ends leaves memory', async () => {
  await using t = await start()
  const first = await t.replica.create('wiki')
  await t.end(first.id)
  await expect.poll(async () => (await t.replica.create('wiki')).id, { timeout: 30_000 }).not.toBe(first.id)
})

test('a session that ends while it is looked up is not kept', async () => {
  await using t = await start()
  await t.replica.create('wiki')
  const row: SessionRow = {
    ...{
      id: 's',
      token: 't',
      type: 'Dial' as const,
      apiSessionId: 'as2',
      serviceId: 'wiki',
      identityId: 'alice',
    },
    ...{
      servicePolicies: [],
      postureAtRouters: false,
      tags: {},
      isSystem: false,
      createdAt: new Date(),
      updatedAt: new Date(),
    },
  }
  const key = { apiSessionId: 'as2', serviceId: 'wiki', type: 'Dial' } as const
  await t.replica.held.keep(async () => {
    t.replica.held.ended(['s'])
    return row
  })
  expect(t.replica.held.find(key, undefined)).toBeUndefined()
  await t.replica.held.keep(async () => row)
  expect(t.replica.held.find(key, undefined)).toBe(row)
})

test('two replicas answer the same session, each after one look', async () => {
  await using t = await start()
  await using other = await startReplica(t.changeLog, t)
  await expect.poll(() => other.watch.isFresh()).toBe(true)
  const first = await t.replica.create('wiki')
  expect(await other.create('wiki')).toMatchObject({ id: first.id })
  await t.db.query(sql`update session set token = 'another'`)
  expect(await other.create('wiki')).toEqual(first)
})

test('memory is bounded: the identities that were used least recently leave first', async () => {
  await using t = await start(20_000)
  for (let n = 0; n < 100; n++) await t.replica.create('wiki', {}, `identity ${n}`)
  expect(t.replica.grants.bytes).toBeLessThanOrEqual(20_000)
  await t.replica.create('wiki', {}, 'identity 99')
  expect(t.asked()).toBe(100)
  await t.replica.create('wiki', {}, 'identity 0')
  expect(t.asked()).toBe(101)
})

test('sessions that have ended take no room', async () => {
  await using t = await start()
  await t.replica.create('wiki')
  const { bytes } = t.replica.held
  const { id } = await t.replica.create('wiki', {}, 'alice', 'another API session')
  expect(t.replica.held.bytes).toBeGreaterThan(bytes)
  t.replica.held.ended([id])
  expect(t.replica.held.bytes).toBe(bytes)
})
