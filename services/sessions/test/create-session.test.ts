import { randomUUID } from 'node:crypto'
import { type Context, Fault, ownContext, type Position, type Positions } from '@overlay/rpc'
import type { ChangeLog } from '@overlay/store/change-log'
import type { Database, Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import type { ScopeKind } from '../src/domain/revocation.js'
import { openGrants } from '../src/grants/grants.js'
import { createSession } from '../src/methods/create-session.js'
import { pruneRevocations, recordRevocations } from '../src/store/revocation.js'
import { sweepStep } from '../src/sweep/sweep-step.js'
import { startStore, waitingFor } from './store.js'

const timeline = randomUUID()
const at = (number: number): Position => ({ timeline, number })
const request = {
  serviceId: 'wiki',
  type: 'Dial',
  tags: Buffer.from('{"a":"b"}'),
  apiSessionAt: undefined,
  hasAccessToken: false,
}

const context = (positions: Positions): Context => ({
  ...ownContext(AbortSignal.timeout(30_000)),
  caller: {
    identityId: 'alice',
    identityName: 'Alice',
    apiSessionId: 'as1',
    isAdmin: false,
    configTypes: [],
  },
  positions,
})

async function follow(db: Database, number: number): Promise<void> {
  for (const schema of ['identity', 'policy'])
    await db.query(sql`
      insert into followed (schema, timeline, number) values (${schema}, ${timeline}, ${number})
          on conflict (schema) do update set number = excluded.number`)
}

interface Policy {
  /** Up to where policy has followed identities and policies. */
  position: number
  isAllowed: boolean
  calls: number
  /** The device of the client has been reported here, and passes. Absent: there are no checks of it. */
  hasDevice?: boolean
  /** The routers online that evaluate devices. */
  evaluating?: readonly string[]
}

/** A stream of policy that is never fresh: each create asks policy. */
const noWatch = {
  isFresh: () => false,
  lacksRouters: () => false,
  positions: () => ({}),
  onChange: () => undefined,
  onMessage: () => undefined,
}

function creator(changeLog: ChangeLog, policyState: Policy) {
  const policy = {
    async authorize({ postureAtRouters }: { readonly postureAtRouters: boolean }, { positions }: Context) {
      policyState.calls++
      policyState.position = Math.max(
        policyState.position,
        positions.identity?.number ?? 0,
        positions.policy?.number ?? 0,
      )
      if (!policyState.isAllowed) throw new Fault('NOT_FOUND', 'service with id wiki not found')
      const isPassing = policyState.hasDevice !== false
      if (!isPassing && !postureAtRouters) throw new Fault('INVALID_POSTURE')
      const followed = { identity: at(policyState.position), policy: at(policyState.position) }
      return {
        routerIds: ['old', 'new'],
        policyIds: ['grants', 'grants too'],
        serviceName: 'wiki',
        positions: followed,
        lasts: true,
        postureAtRouters: !isPassing,
      }
    },
  }
  return createSession({
    changeLog,
    grants: openGrants(policy, noWatch),
    held: { find: () => undefined, keep: (look) => look() },
    clientRouters: {
      of: () => undefined,
      evaluating: (ids) => ids.filter((id) => policyState.evaluating?.includes(id)),
      lastFeaturesOf: () => [],
    },
    clientToken: ({ token }) => token,
    identity: { checkApiSession: async () => ({ position: at(policyState.position) }) },
  })
}

test('a session has its service, token and tags; a second create returns the same session', async () => {
  await using store = await startStore()
  await follow(store.changeLog.db, 5)
  const create = creator(store.changeLog, { position: 5, isAllowed: true, calls: 0 })
  const first = JSON.parse((await create(request, context({ identity: at(5) }))).json.toString())
  expect(first).toMatchObject({
    type: 'Dial',
    serviceId: 'wiki',
    service: { entity: 'services', id: 'wiki', name: 'wiki' },
    apiSessionId: 'as1',
    identityId: 'alice',
    edgeRouters: null,
    tags: { a: 'b' },
  })
  const again = JSON.parse((await create(request, context({ identity: at(5) }))).json.toString())
  expect([again.id, again.token]).toEqual([first.id, first.token])
})

const revoke = (db: Database, schema: string, kind: ScopeKind, id: string, number = 7) =>
  db.transaction(undefined, (tx) =>
    recordRevocations(tx, schema, at(number), [{ kind, id, number, isPending: false }]),
  )

test.each([
  ['identity', 'everything', ''],
  ['identity', 'identity', 'alice'],
  ['identity', 'api-session', 'as1'],
  ['policy', 'everything', ''],
  ['policy', 'identity', 'alice'],
  ['policy', 'service', 'wiki'],
  ['policy', 'policy', 'grants'],
] as const)(
  'an authorization that a change of %s overtook (%s) is repeated at the position of the change',
  async (schema, kind, id) => {
    await using store = await startStore()
    await follow(store.changeLog.db, 7)
    await revoke(store.changeLog.db, schema, kind, id)
    const policyState = { position: 5, isAllowed: true, calls: 0 }
    await creator(store.changeLog, policyState)(request, context({ identity: at(5) }))
    expect([policyState.calls, policyState.position]).toEqual([2, 7])
  },
)

test('changes of other accesses do not affect an authorization', async () => {
  await using store = await startStore()
  const { db } = store.changeLog
  await follow(db, 7)
  await revoke(db, 'identity', 'identity', 'bob')
  await revoke(db, 'identity', 'api-session', 'as2')
  await revoke(db, 'policy', 'service', 'other')
  await revoke(db, 'policy', 'policy', 'another')
  await revoke(db, 'policy', 'everything', '', 5)
  const policyState = { position: 5, isAllowed: true, calls: 0 }
  await creator(store.changeLog, policyState)(request, context({ identity: at(5) }))
  expect(policyState.calls).toBe(1)
})

test('an authorization older than all kept revocations is repeated', async () => {
  await using store = await startStore()
  const { db } = store.changeLog
  await follow(db, 7)
  await revoke(db, 'policy', 'service', 'other', 6)
  await pruneRevocations(db, 0)
  const policyState = { position: 5, isAllowed: true, calls: 0 }
  await creator(store.changeLog, policyState)(request, context({ identity: at(5) }))
  expect(policyState.calls).toBe(2)
})

test('access that was lost in the meantime is refused', async () => {
  await using store = await startStore()
  await follow(store.changeLog.db, 7)
  await revoke(store.changeLog.db, 'policy', 'service', 'wiki')
  const policyState = { position: 5, isAllowed: false, calls: 0 }
  const create = creator(store.changeLog, policyState)
  await expect(create(request, context({}))).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('no session is created before the streams that take access away are followed', async () => {
  await using store = await startStore()
  const create = creator(store.changeLog, { position: 5, isAllowed: true, calls: 0 })
  await expect(create(request, context({}))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})

test('a create that waits for a follower sees the revocation that it records', async () => {
  await using store = await startStore()
  const { db } = store.changeLog
  await follow(db, 5)
  const policyState = { position: 5, isAllowed: true, calls: 0 }
  let creating: Promise<unknown> | undefined
  await db.transaction(undefined, async (tx) => {
    await tx.query(sql`select from followed where schema = 'identity' for update`)
    creating = creator(store.changeLog, policyState)(request, context({ identity: at(5) }))
    creating.catch(() => undefined)
    await waitingFor(db)
    policyState.isAllowed = false
    await recordRevocations(tx, 'identity', at(6), [
      { kind: 'identity', id: 'alice', number: 6, isPending: true },
    ])
    await tx.query(sql`update followed set number = 6 where schema = 'identity'`)
  })
  await expect(creating).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect((await db.query(sql`select from session`)).rowCount).toBe(0)
})

test('a follower waits for a create that has compared, and the sweep sees its session', async () => {
  await using store = await startStore()
  const { db } = store.changeLog
  await follow(db, 5)
  const policyState = { position: 5, isAllowed: true, calls: 0 }
  const inside = (tx: Tx): Database => ({ ...db, query: tx.query }) // the create runs in a transaction that stays open
  let following: Promise<unknown> | undefined
  await db.transaction(undefined, async (tx) => {
    await creator({ ...store.changeLog, db: inside(tx) }, policyState)(request, context({ identity: at(5) }))
    following = db.transaction(undefined, async (other) => {
      await other.query(sql`select from followed where schema = 'policy' for update`)
      await recordRevocations(other, 'policy', at(6), [
        { kind: 'policy', id: 'grants', number: 6, isPending: true },
      ])
    })
    await waitingFor(db)
  })
  await following
  const lost = { findLost: async () => ({ lost: [true], granting: [''] }) }
  await sweepStep({
    changeLog: store.changeLog,
    policy: { ...lost, findRequiring: async () => ({ policyIds: [] }) },
    names,
    heads,
  })
  expect((await db.query(sql`select from session`)).rowCount).toBe(0)
})

const names = async () => new Map()
const heads = async () => ({})

/** Two edge routers that are online. */
async function startWithRouters() {
  const store = await startStore()
  const { db } = store.changeLog
  await follow(db, 5)
  await db.query(
    sql`insert into router (id, name, is_edge) values ('old', 'old', true), ('new', 'new', true)`,
  )
  const state: Policy = { position: 5, isAllowed: true, calls: 0, hasDevice: false, evaluating: ['new'] }
  const create = creator(store.changeLog, state)
  const ask = async (hasAccessToken = true) => {
    const { json } = await create({ ...request, hasAccessToken }, context({ identity: at(5) }))
    const { id, edgeRouters } = JSON.parse(json.toString()) as {
      readonly id: string
      readonly edgeRouters: readonly { readonly name: string }[] | null
    }
    return { id, routers: (edgeRouters ?? []).map(({ name }) => name) }
  }
  const kinds = async () =>
    (await db.query<{ at: boolean }>(sql`select posture_at_routers as at from session`)).rows.map(
      ({ at }) => at,
    )
  return { state, ask, kinds, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() }
}

test('a client with an access token may use the routers that evaluate its device, if one is online', async () => {
  await using t = await startWithRouters()
  const refused = { code: 'INVALID_POSTURE' }
  await expect(t.ask(false)).rejects.toMatchObject(refused)
  t.state.evaluating = []
  await expect(t.ask()).rejects.toMatchObject(refused)
  t.state.evaluating = ['new']
  const first = await t.ask()
  expect(first.routers).toEqual(['new'])
  expect(await t.ask()).toEqual(first)
  expect(await t.kinds()).toEqual([true])
})

test('a session at routers stays when policy knows the device, too, and is replaced when no router evaluates it', async () => {
  await using t = await startWithRouters()
  const first = await t.ask()
  t.state.hasDevice = true
  expect(await t.ask()).toEqual(first)
  t.state.evaluating = []
  const second = await t.ask()
  expect(second.id).not.toBe(first.id)
  expect(second.routers).toEqual(['old', 'new'])
  expect(await t.kinds()).toEqual([false])
})

test('a session whose device fails at policy does not become one at routers', async () => {
  await using t = await startWithRouters()
  t.state.hasDevice = true
  const first = await t.ask()
  t.state.hasDevice = false
  const second = await t.ask()
  expect(second.id).not.toBe(first.id)
  expect([second.routers, await t.kinds()]).toEqual([['new'], [true]])
})
