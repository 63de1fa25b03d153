import { randomUUID } from 'node:crypto'
import { type Database, type History, positionFollowed } from '@overlay/platform'
import { type Context, Fault, ownContext, type Position, type Positions } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { endSessions } from '../src/events/lost-access.js'
import { sessionCreator } from '../src/rpc/create-session.js'
import { sessionMaker } from '../src/store/session-row.js'
import { startStore, waitingFor } from './store.js'

const timeline = randomUUID()
const at = (number: number): Position => ({ timeline, number })
const request = { serviceId: 'wiki', type: 'Dial', tags: Buffer.from('{"a":"b"}') }

const context = (positions: Positions): Context => ({
  ...ownContext(AbortSignal.timeout(5000)),
  caller: { identityId: 'alice', apiSessionId: 'as1', isAdmin: false, configTypes: [] },
  positions,
})

async function follow(db: Database, number: number): Promise<void> {
  for (const schema of ['identity', 'policy'])
    await db.query(sql`
      insert into followed (schema, timeline, number) values (${schema}, ${timeline}, ${number})
          on conflict (schema) do update set number = excluded.number`)
}

interface World {
  /** Up to where policy knows identities and policies. */
  known: number
  allowed: boolean
  asked: number
}

function creator({ db }: History, world: World) {
  return sessionCreator({
    db,
    make: sessionMaker(db),
    followed: (schema) => positionFollowed(db, schema),
    policy: {
      async authorize(_question, { positions }) {
        world.asked++
        world.known = Math.max(world.known, positions.identity?.number ?? 0, positions.policy?.number ?? 0)
        if (!world.allowed) throw new Fault('NOT_FOUND', 'service with id wiki not found')
        const positionsThen = { identity: at(world.known), policy: at(world.known) }
        return { routerIds: [], policyIds: [], serviceName: 'wiki', positions: positionsThen }
      },
    },
    identity: { checkApiSession: async () => ({ position: at(world.known) }) },
  })
}

test('a session carries its service, token and tags; the same again is the same session', async () => {
  await using store = await startStore()
  await follow(store.history.db, 5)
  const create = creator(store.history, { known: 5, allowed: true, asked: 0 })
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

test('an authorization that was overtaken is asked for again, at the position that overtook it', async () => {
  await using store = await startStore()
  await follow(store.history.db, 7)
  const world = { known: 5, allowed: true, asked: 0 }
  await creator(store.history, world)(request, context({ identity: at(5) }))
  expect([world.asked, world.known]).toEqual([2, 7])
})

test('access that is gone by then is refused', async () => {
  await using store = await startStore()
  await follow(store.history.db, 7)
  const world = { known: 5, allowed: false, asked: 0 }
  const create = creator(store.history, world)
  await expect(create(request, context({}))).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('while nobody follows the streams that take access away, nothing is granted', async () => {
  await using store = await startStore()
  const create = creator(store.history, { known: 5, allowed: true, asked: 0 })
  await expect(create(request, context({}))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})

test('a revocation that is under way is seen: the session is not made behind its back', async () => {
  await using store = await startStore()
  const { db } = store.history
  await follow(db, 5)
  const world = { known: 5, allowed: true, asked: 0 }
  let creating: Promise<unknown> | undefined
  await db.transaction(undefined, async (tx) => {
    await tx.query(sql`select from followed where schema = 'identity' for update`)
    creating = creator(store.history, world)(request, context({ identity: at(5) }))
    creating.catch(() => undefined)
    await waitingFor(db)
    expect(await endSessions(tx, sql`identity_id = 'alice'`)).toEqual([])
    world.allowed = false
    await tx.query(sql`update followed set number = 6 where schema = 'identity'`)
  })
  await expect(creating).rejects.toMatchObject({ code: 'NOT_FOUND' })
  const { rowCount } = await db.query(sql`select from session`)
  expect(rowCount).toBe(0)
})
