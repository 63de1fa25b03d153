import { Fault } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { FAILED_MS, OFFLINE_MS, UNROUTES } from '../src/limits.js'
import { claimMoves } from '../src/store/move-circuits.js'
import { pruneUnroutes } from '../src/store/unroute.js'
import { actorOf } from '../src/terminators/actor.js'
import { endWithSessions } from '../src/terminators/end-with-sessions.js'
import { openTerminatorRemover } from '../src/terminators/remove-terminators.js'
import { dial } from './circuit-messages.js'
import { addSession, type Network, startNetwork } from './circuit-replicas.js'
import { log } from './store.js'

/** Moves the times of all circuits into the past. */
const age = ({ db }: Network, seconds: number) =>
  db.query(sql`
    update circuit set created_at = created_at - make_interval(secs => ${seconds}),
                       verified_at = verified_at - make_interval(secs => ${seconds}),
                       moving_until = moving_until - make_interval(secs => ${seconds})`)

test('a circuit whose end no router has reported ends, and one that its routers know stays', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const [r1, r2] = [network.routers.get('r1'), network.routers.get('r2')]
  const stays = await dial(a, r2)
  const lost = await dial(a, r2)
  r2.circuits.delete(lost.circuitId)
  await age(network, 14 * 60)
  await network.replica('b').upkeep(0)
  expect(await network.circuits()).toHaveLength(2)
  await age(network, 60)
  await network.replica('b').upkeep(0)
  expect(await network.circuits()).toEqual([stays.circuitId])
  expect(r1.unroutes).toEqual([{ circuitId: lost.circuitId, now: true }])
})

test('a circuit of a replica that is gone is verified each minute', async () => {
  await using network = await startNetwork()
  const r1 = network.routers.get('r1')
  const { circuitId } = await dial(network.replica('a'), r1)
  r1.circuits.delete(circuitId)
  network.liveReplicas.delete('a')
  await network.replica('b').upkeep(0)
  expect(await network.circuits()).toEqual([circuitId])
  await age(network, 61)
  await network.replica('b').upkeep(0)
  expect(await network.circuits()).toEqual([])
})

test('a circuit of a replica that is gone stays while its routers know it', async () => {
  await using network = await startNetwork()
  const { circuitId } = await dial(network.replica('a'), network.routers.get('r2'))
  network.liveReplicas.delete('a')
  await age(network, 3600)
  await network.replica('b').upkeep(0)
  expect(await network.circuits()).toEqual([circuitId])
})

test('a circuit is not taken for lost because a router does not answer', async () => {
  await using network = await startNetwork()
  const r1 = network.routers.get('r1')
  const { circuitId } = await dial(network.replica('a'), r1)
  r1.inspects = false
  r1.circuits.delete(circuitId)
  await age(network, 3600)
  await network.replica('a').upkeep(0)
  expect(await network.circuits()).toEqual([circuitId])
})

test('a replica completes the move of a circuit that another one has begun and left', async () => {
  await using network = await startNetwork()
  const { circuitId } = await dial(network.replica('a'), network.routers.get('r2'))
  await claimMoves(network.db, [circuitId])
  network.links.splice(0, 1, 'r1-r3')
  await network.replica('b').upkeep(0)
  const path = () => network.db.query(sql`select link_ids, moving_until from circuit`)
  expect((await path()).rows).toMatchObject([{ link_ids: ['r1-r2'] }])
  await age(network, 60)
  await network.replica('b').upkeep(0)
  expect((await path()).rows).toEqual([{ link_ids: ['r2-r3', 'r1-r3'], moving_until: null }])
})

test('circuits of a router that is offline for a minute end, unless it returns', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const r2 = network.routers.get('r2')
  const { circuitId } = await dial(a, r2)
  const { upkeep } = network.replica('b')
  r2.isOnline = false
  await upkeep(0)
  await upkeep(OFFLINE_MS - 1)
  r2.isOnline = true
  await upkeep(OFFLINE_MS)
  r2.isOnline = false
  await upkeep(OFFLINE_MS + 1)
  await upkeep(2 * OFFLINE_MS)
  expect(await network.circuits()).toEqual([circuitId])
  await upkeep(2 * OFFLINE_MS + 1)
  expect(await network.circuits()).toEqual([])
})

test.each([
  ['a failed link of a router that is offline end', true, false, 0],
  ['a link that is only unknown stay, while a router is offline', false, false, 1],
  ['a failed link of a router that is back get another path', true, true, 1],
])('after seconds, circuits over %s', async (_what, hasFailed, isBack, left) => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const r1 = network.routers.get('r1')
  const { circuitId } = await dial(a, network.routers.get('r2'))
  network.links.splice(0, 1, 'r1-r3')
  r1.isOnline = false
  await a.leaveLink('r1-r2', hasFailed)
  await a.upkeep(0)
  await a.upkeep(FAILED_MS - 1)
  expect(await network.circuits()).toEqual([circuitId])
  r1.isOnline = isBack
  await a.upkeep(FAILED_MS)
  expect(await network.circuits()).toHaveLength(left)
  const { rows } = await network.db.query(sql`select from circuit where link_ids @> array['r1-r3']`)
  expect(rows).toHaveLength(isBack ? 1 : 0)
})

/** The routers that must still be told of circuits that have ended. */
async function untold({ db }: Network): Promise<readonly string[]> {
  const { rows } = await db.query<{ id: string }>(sql`select router_id as id from unroute order by 1`)
  return rows.map(({ id }) => id)
}

const ageEnds = ({ db }: Network) => db.query(sql`update unroute set ended_at = ended_at - interval '61 s'`)

test('that a circuit has ended is forgotten when its routers have received it', async () => {
  await using network = await startNetwork()
  const { channel } = network.routers.get('r1')
  const a = network.replica('a', [channel])
  await dial(a, network.routers.get('r2'))
  await a.endOfSessions(['s1'])
  await a.connected?.(channel)
  const now = Math.ceil(performance.now())
  await a.upkeep(now)
  await a.upkeep(now + 60_000)
  expect(await untold(network)).toEqual(['r1', 'r2'])
  await ageEnds(network)
  const isNew = { ...channel }
  const b = network.replica('b', [isNew])
  await b.connected?.(isNew)
  await b.upkeep(now)
  await b.upkeep(now + 59_999)
  expect(await untold(network)).toEqual(['r1', 'r2'])
  await a.upkeep(now + 120_000)
  expect(await untold(network)).toEqual(['r2'])
})

test('nothing is forgotten while a router has not taken all that it missed', async () => {
  await using network = await startNetwork()
  const r1 = network.routers.get('r1')
  const taking = Promise.withResolvers<void>()
  const sent: number[] = []
  const drained = (): Promise<void> => {
    sent.push(r1.unroutes.length)
    return taking.promise
  }
  const slow = { ...r1.channel, channel: { ...r1.channel.channel, drained } }
  await network.db.query(sql`
    insert into unroute (router_id, circuit_id) select 'r1', 'c' || i from generate_series(1, ${UNROUTES + 1}) as i`)
  await ageEnds(network)
  const a = network.replica('a', [slow])
  const connecting = a.connected?.(slow)
  const now = Math.ceil(performance.now())
  await a.upkeep(now)
  await a.upkeep(now + 60_000)
  expect(await untold(network)).toHaveLength(UNROUTES + 1)
  taking.resolve()
  await connecting
  expect(sent).toEqual([UNROUTES])
  expect(new Set(r1.unroutes.map(({ circuitId }) => circuitId)).size).toBe(UNROUTES + 1)
  await a.upkeep(now + 120_000)
  await a.upkeep(now + 180_000)
  expect(await untold(network)).toEqual([])
})

test('much is forgotten in portions: what one router has received, and what is old at any', async () => {
  await using network = await startNetwork()
  const { db } = network
  await db.query(sql`
    insert into unroute (router_id, circuit_id, ended_at)
    select router_id, 'c' || i, now() - make_interval(secs => age)
      from (values ('r1', 61), ('r2', 61), ('r3', 101)) as given (router_id, age) cross join generate_series(1, 3) as i`)
  let portions = 1
  while (await pruneUnroutes(db, ['r1'], 60, 100, 2)) portions++
  expect(portions).toBe(3)
  expect(await untold(network)).toEqual(['r2', 'r2', 'r2'])
})

test('a circuit whose session has ended without it ends', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const r1 = network.routers.get('r1')
  await addSession(network.db, 's2')
  const { circuitId } = await dial(a, r1)
  const stays = await dial(a, r1, { sessionToken: 'token of s2' })
  await network.db.query(sql`delete from session where id = 's1'`)
  await a.upkeep(0)
  expect(await network.circuits()).toEqual([stays.circuitId])
  expect(r1.unroutes).toEqual([{ circuitId, now: true }])
})

const addTerminator = ({ db }: Network) =>
  db.query(sql`
    insert into terminator (id, service_id, router_id, binding, address, session_id)
    values ('t1', 'wiki', 'r1', 'edge', 't1', 'bind')`)

/** Deletes terminator t1; its circuits cannot be ended at that moment. */
const deletions = {
  session: async ({ changeLog }: Network) => {
    await using sessions = endWithSessions({ changeLog, endCircuits, log })
    await sessions.endOf(['bind'])
  },
  router: async ({ changeLog }: Network) => {
    const remove = openTerminatorRemover({ changeLog, endCircuits })
    await remove({ ids: ['t1'], routerId: 'r1', by: actorOf('r1') })
  },
}
const endCircuits = () => Promise.reject(new Fault('UNAVAILABLE'))

test.each(['session', 'router'] as const)(
  'circuits of an ended bind session end later if they could not with the terminator, deleted by the %s',
  async (by) => {
    await using network = await startNetwork()
    const a = network.replica('a')
    const r1 = network.routers.get('r1')
    await network.db.query(sql`insert into router (id, name, is_edge) values ('r1', 'r1', true)`)
    await addTerminator(network)
    const before = await dial(a, r1)
    await expect(deletions[by](network)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await addTerminator(network)
    const after = await dial(a, r1)
    await a.upkeep(0)
    expect(await network.circuits()).toEqual([after.circuitId])
    expect(r1.unroutes).toEqual([{ circuitId: before.circuitId, now: true }])
  },
)

test('a circuit whose terminator ended during the dial ends, until that is forgotten', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const r1 = network.routers.get('r1')
  await network.db.query(sql`insert into ended_terminator values ('t1', now())`)
  await dial(a, r1)
  await a.upkeep(0)
  expect(await network.circuits()).toEqual([])
  await network.db.query(sql`update ended_terminator set ended_at = ended_at - interval '11 min'`)
  await network.replica('b').upkeep(0)
  expect((await network.db.query(sql`select from ended_terminator`)).rowCount).toBe(0)
})

test('a circuit stays when its terminator is deleted while the bind session lives', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  await network.db.query(sql`insert into router (id, name, is_edge) values ('r1', 'r1', true)`)
  await addSession(network.db, 'bind')
  await addTerminator(network)
  const { circuitId } = await dial(a, network.routers.get('r1'))
  await deletions.router(network)
  await a.upkeep(0)
  expect(await network.circuits()).toEqual([circuitId])
})

test('circuits of a router whose process is new are verified next', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const r2 = network.routers.get('r2')
  await dial(a, r2)
  await age(network, 60)
  r2.circuits.clear()
  await a.connected?.(r2.channel)
  await a.upkeep(0)
  expect(await network.circuits()).toHaveLength(1)
  await a.connected?.({ ...r2.channel, isReconnection: false })
  await a.upkeep(0)
  expect(await network.circuits()).toEqual([])
})

test('a circuit that was moved is verified next, but not before its router has been answered', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const r2 = network.routers.get('r2')
  await dial(a, r2)
  r2.circuits.clear()
  network.links.splice(0, 1, 'r1-r2#2')
  await a.leaveLink('r1-r2')
  for (const ends of r2.circuits.values()) ends.clear()
  await a.upkeep(0)
  expect(await network.circuits()).toHaveLength(1)
  await age(network, 60)
  await a.upkeep(0)
  expect(await network.circuits()).toEqual([])
})
