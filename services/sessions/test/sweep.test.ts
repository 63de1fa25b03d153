import { randomUUID } from 'node:crypto'
import type { Change, Context, HeldAccess, Positions } from '@overlay/rpc'
import { withLoadedRows } from '@overlay/store/change-log'
import type { Database } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { identityEffects } from '../src/consumers/identity.js'
import { policyEffects } from '../src/consumers/policy.js'
import { sweepStep } from '../src/sweep/sweep-step.js'
import { startSweeper } from '../src/sweep/sweeper.js'
import { log, startStore } from './store.js'

const timeline = randomUUID()
const upto = (number: number) => ({ timeline, number })

/** The answers of policy, and the questions that it got. */
interface World {
  /** Policies that grant, by identity and service. */
  readonly granting: Map<string, string>
  readonly checked: string[]
  readonly positions: Positions[]
  heads: Positions
  /** Called with each question; may fail it. */
  onQuestion: (held: readonly HeldAccess[]) => Promise<void>
}

const depsOf = (world: World) => ({
  policy: {
    async findLost({ held }: { held: HeldAccess[] }, { positions }: Context) {
      world.positions.push(positions)
      await world.onQuestion(held)
      world.checked.push(...held.map(({ identityId, serviceId }) => `${identityId} ${serviceId}`))
      const granting = held.map(({ identityId, serviceId }) =>
        world.granting.get(`${identityId} ${serviceId}`),
      )
      return { lost: granting.map((id) => id === undefined), granting: granting.map((id) => id ?? '') }
    },
    findRequiring: async ({ postureCheckIds }: { postureCheckIds: string[] }) => ({
      policyIds: postureCheckIds.map((id) => `policy with ${id}`),
    }),
  },
  heads: async () => world.heads,
  names: async (_kind: string, ids: readonly string[]) =>
    new Map(ids.filter((id) => id.startsWith('live')).map((id) => [id, id])),
})

async function startWorld(pageSize = 100) {
  const store = await startStore()
  const { changeLog } = store
  const { db } = changeLog
  const world: World = {
    ...{ granting: new Map(), checked: [], positions: [], heads: {} },
    onQuestion: async () => undefined,
  }
  for (const schema of ['identity', 'policy'])
    await db.query(sql`insert into followed (schema, timeline, number) values (${schema}, ${timeline}, 1)`)
  const effects = {
    identity: identityEffects({ wake: () => undefined }),
    policy: policyEffects({ wake: () => undefined }),
  }
  let number = 1
  return {
    db,
    changeLog,
    world,
    /** Applies a change of a row as a consumer does: null, it is deleted. */
    async change(schema: 'identity' | 'policy', kind: string, id: string, row: object | null = {}) {
      const json = row ? Buffer.from(JSON.stringify({ name: id, ...row })) : Buffer.alloc(0)
      const change: Change = { kind, id, json, number: ++number, atMs: 0 }
      await db.transaction(undefined, async (tx) => {
        await effects[schema].apply(tx, [change], upto(number))
        await tx.query(sql`update followed set number = ${number} where schema = ${schema}`)
      })
      return upto(number)
    },
    reload: (schema: 'identity' | 'policy') =>
      db.transaction(undefined, (tx) =>
        withLoadedRows(tx, [], (rows) => effects[schema].reload(tx, rows, upto(++number))),
      ),
    step: (pages?: number) => sweepStep({ changeLog, pageSize, ...depsOf(world) }, pages),
    async sweep() {
      while (await sweepStep({ changeLog, pageSize, ...depsOf(world) }));
    },
    sweeper: () => startSweeper({ changeLog, log, ...depsOf(world) }),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

interface SessionsLike {
  readonly identity: string
  readonly service: string
  readonly policy: string
  readonly apiSession?: string
}

/** Equal sessions, each with an API session of its own unless one is named. */
async function makeSessions(
  db: Database,
  { identity, service, policy, apiSession }: SessionsLike,
  count = 1,
) {
  await db.query(sql`
    insert into session (id, token, type, api_session_id, service_id, identity_id, granting_policy_id)
    select ${identity} || ' ' || ${service} || to_char(n, '0000'), gen_random_uuid()::text, 'Dial',
           coalesce(${apiSession ?? null}, 'live ' || gen_random_uuid()), ${service}, ${identity}, ${policy}
      from generate_series(1, ${count}::int) as n`)
}

async function counts(db: Database): Promise<Readonly<Record<string, number>>> {
  const { rows } = await db.query<{ access: string; count: number }>(sql`
    select identity_id || ' ' || service_id as access, count(*) from session group by 1`)
  return Object.fromEntries(rows.map(({ access, count }) => [access, count]))
}

test('a change of a policy concerns only the sessions that it grants', async () => {
  await using started = await startWorld()
  const { db, world } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' })
  await makeSessions(db, { identity: 'bob', service: 'wiki', policy: 'p2' })
  await started.change('policy', 'service-policies', 'p1')
  await started.sweep()
  expect(world.checked).toEqual(['alice wiki'])
  expect(await counts(db)).toEqual({ 'bob wiki': 1 })
})

test('policy learns for which sessions routers evaluate the device', async () => {
  await using started = await startWorld()
  const { db, world } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' })
  await makeSessions(db, { identity: 'alice', service: 'files', policy: 'p1' })
  await db.query(sql`update session set posture_at_routers = true where service_id = 'files'`)
  const asked: Record<string, boolean> = {}
  world.onQuestion = async (held) => {
    for (const { serviceId, postureAtRouters } of held) asked[serviceId] = postureAtRouters
  }
  await started.change('policy', 'service-policies', 'p1')
  await started.sweep()
  expect(asked).toEqual({ wiki: false, files: true })
})

test('a session that another policy grants stays, and ends with that policy', async () => {
  await using started = await startWorld()
  const { db, world } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' })
  world.granting.set('alice wiki', 'p2')
  await started.change('policy', 'service-policies', 'p1', null)
  await started.sweep()
  expect(await counts(db)).toEqual({ 'alice wiki': 1 })
  world.granting.clear()
  await started.change('policy', 'service-policies', 'p2', null)
  await started.sweep()
  expect(await counts(db)).toEqual({})
})

test('a change of any policy concerns sessions whose policy is not determined', async () => {
  await using started = await startWorld()
  const { db, world } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: '?' })
  world.granting.set('alice wiki', 'p1')
  await started.change('policy', 'service-policies', 'p2')
  await started.sweep()
  await started.change('policy', 'service-policies', 'p2')
  await started.sweep()
  expect(world.checked).toEqual(['alice wiki'])
})

test('a change of a posture check concerns the sessions of the policies that require it', async () => {
  await using started = await startWorld()
  const { db } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'policy with c1' })
  await makeSessions(db, { identity: 'bob', service: 'wiki', policy: 'p2' })
  await started.change('policy', 'posture-checks', 'c1')
  await started.sweep()
  expect(await counts(db)).toEqual({ 'bob wiki': 1 })
})

test.each([
  ['identity', 'identities', 'alice'],
  ['policy', 'posture-data', 'alice'],
  ['policy', 'services', 'wiki'],
] as const)('a change of %s (%s) concerns the sessions of that row', async (schema, kind, id) => {
  await using started = await startWorld()
  const { db } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' })
  await makeSessions(db, { identity: 'bob', service: 'chat', policy: 'p1' })
  await started.change(schema, kind, id)
  await started.sweep()
  expect(await counts(db)).toEqual({ 'bob chat': 1 })
})

test('many sessions end in pages, each with its audit and change row; a failure repeats no page', async () => {
  await using started = await startWorld(100)
  const { db, world } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' }, 250)
  await started.change('policy', 'service-policies', 'p1')
  await started.step() // marks the scope as large
  await started.step()
  expect(await counts(db)).toEqual({ 'alice wiki': 150 })
  world.onQuestion = async () => {
    throw new Error('policy is away')
  }
  await expect(started.step()).rejects.toThrow('policy is away')
  world.onQuestion = async () => undefined
  await started.sweep()
  expect(await counts(db)).toEqual({})
  expect(world.checked.length).toBe(250)
  const { rows } = await db.query(
    sql`select count(*), count(distinct entity_id) as ids from audit where kind = 'sessions'`,
  )
  expect(rows).toEqual([{ count: 250, ids: 250 }])
  const { rows: deleted } = await db.query(
    sql`select count(*) from change where kind = 'sessions' and entity is null`,
  )
  expect(deleted).toEqual([{ count: 250 }])
})

test('policy is asked about a page while the page before it is written', async () => {
  await using started = await startWorld(100)
  const { db, world } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' }, 250)
  await started.change('policy', 'service-policies', 'p1')
  await started.step()
  const asked = new Promise<void>((resolve) => {
    world.onQuestion = async () => {
      if (world.positions.length === 2) resolve()
    }
  })
  const sweeping = await db.transaction(undefined, async (tx) => {
    await tx.query(sql`select from stream for update`)
    const step = started.step(5)
    await asked
    expect(await counts(db)).toEqual({ 'alice wiki': 250 })
    return { step }
  })
  await sweeping.step
  expect(await counts(db)).toEqual({})
  expect(world.checked.length).toBe(250)
})

test('pages that are read ahead do not delay a small scope', async () => {
  await using started = await startWorld(100)
  const { db, world } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' }, 500)
  await started.change('policy', 'service-policies', 'p1')
  await started.step()
  world.onQuestion = async () => {
    if (world.positions.length === 2) await started.change('identity', 'identities', 'bob')
  }
  await started.step(5)
  expect(await counts(db)).toEqual({ 'alice wiki': 400 })
})

test('a change of a scope during its sweep causes another sweep', async () => {
  await using started = await startWorld(100)
  const { db, world } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' }, 250)
  world.granting.set('alice wiki', 'p1')
  await started.change('policy', 'service-policies', 'p1')
  await started.step()
  world.granting.clear()
  await started.change('policy', 'service-policies', 'p1')
  await started.sweep()
  expect(await counts(db)).toEqual({})
})

test('a revocation that is recorded while policy answers stays pending', async () => {
  await using started = await startWorld()
  const { db, world } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' })
  world.granting.set('alice wiki', 'p1')
  await started.change('policy', 'service-policies', 'p1')
  world.onQuestion = async () => {
    world.onQuestion = async () => world.granting.clear()
    await started.change('policy', 'service-policies', 'p1')
  }
  await started.sweep()
  await started.sweep()
  expect(await counts(db)).toEqual({})
})

test('policy answers as of the heads, and as of the followed position if an owner does not answer', async () => {
  await using started = await startWorld()
  const { db, world } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' })
  world.heads = { identity: upto(50) }
  const policy = await started.change('policy', 'service-policies', 'p1')
  await started.sweep()
  expect(world.positions).toEqual([{ identity: upto(50), policy }])
})

test('while policy answers, the sweep has no transaction open and no row locked', async () => {
  await using started = await startWorld()
  const { db, world } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' })
  await started.change('policy', 'posture-checks', 'c1')
  await started.change('policy', 'service-policies', 'p1')
  const opened: unknown[] = []
  world.onQuestion = async () => {
    const { rowCount } = await db.query(sql`
      select from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`)
    opened.push(rowCount)
    await db.query(sql`select from revocation for update nowait`)
    await db.query(sql`select from session for update nowait`)
  }
  await started.sweep()
  expect(opened).toEqual([0])
  expect(await counts(db)).toEqual({})
})

test('a small scope waits for one page of a large one at most', async () => {
  await using started = await startWorld(100)
  const { db } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' }, 500)
  await makeSessions(db, { identity: 'bob', service: 'chat', policy: 'p2' })
  await started.change('policy', 'service-policies', 'p1')
  await started.step()
  await started.change('identity', 'identities', 'bob')
  await started.step()
  expect(Object.keys(await counts(db))).toEqual(['alice wiki'])
})

test.each([
  ['identity', 'identities', 'alice'],
  ['policy', 'services', 'wiki'],
] as const)('%s: a deletion of one of its %s ends all of its sessions', async (schema, kind, id) => {
  await using started = await startWorld(100)
  const { db } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' }, 700)
  await started.change(schema, kind, id, null)
  await started.sweep()
  expect(await counts(db)).toEqual({})
})

test('the end of an API session ends all of its sessions, whatever policy grants', async () => {
  await using started = await startWorld(100)
  const { db, world } = started
  for (let n = 0; n < 600; n++) world.granting.set(`alice s${n}`, 'p1')
  await db.query(sql`
    insert into session (id, token, type, api_session_id, service_id, identity_id, granting_policy_id)
    select 's' || n, gen_random_uuid()::text, 'Dial', 'as1', 's' || n, 'alice', 'p1'
      from generate_series(0, 599) as n`)
  await started.change('identity', 'api-sessions', 'as1', null)
  await started.sweep()
  expect(await counts(db)).toEqual({})
})

test('after missed changes every session is checked, and its API session too', async () => {
  await using started = await startWorld(100)
  const { db, world } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' }, 150)
  await makeSessions(db, { identity: 'alice', service: 'chat', policy: 'p1', apiSession: 'gone' })
  await makeSessions(db, { identity: 'bob', service: 'chat', policy: 'p1' })
  world.granting.set('alice wiki', 'p1').set('alice chat', 'p1')
  await started.reload('policy')
  await started.sweep()
  expect(await counts(db)).toEqual({ 'alice wiki': 150, 'alice chat': 1 })
  await started.reload('identity')
  await started.sweep()
  expect(await counts(db)).toEqual({ 'alice wiki': 150 })
})

test('a change has taken effect when its sessions are checked, which needs no timer', async () => {
  await using started = await startWorld()
  const { db } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' })
  await using sweeper = started.sweeper()
  const position = await started.change('identity', 'identities', 'alice')
  await sweeper.waitFor('identity', position, AbortSignal.timeout(30_000))
  expect(await counts(db)).toEqual({})
})

test('a wait for a sweep that cannot proceed ends with a timeout', async () => {
  await using started = await startWorld()
  const { db, world } = started
  await makeSessions(db, { identity: 'alice', service: 'wiki', policy: 'p1' })
  world.onQuestion = async () => {
    throw new Error('policy is away')
  }
  await using sweeper = started.sweeper()
  const position = await started.change('identity', 'identities', 'alice')
  const waiting = sweeper.waitFor('identity', position, AbortSignal.timeout(300))
  await expect(waiting).rejects.toMatchObject({ code: 'TIMEOUT' })
})
