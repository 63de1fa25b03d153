import { FaultSubject } from '@overlay/channel'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { claimMoves, completeMoves, savePaths } from '../src/store/move-circuits.js'
import { dial, fault } from './circuit-messages.js'
import { type Network, receive, startNetwork } from './circuit-replicas.js'

const pathOf = async ({ db }: Network, id: string) => {
  const { rows } = await db.query(sql`
    select router_ids, link_ids, moving_until from circuit where id = ${id}`)
  return rows[0]
}

/** A circuit from r2 to r1 over their link. */
async function startCircuit() {
  const network = await startNetwork()
  const a = network.replica('a')
  const { circuitId } = await dial(a, network.routers.get('r2'))
  return { network, a, circuitId }
}

test('circuits leave a link that is gone, and others are not touched', async () => {
  const { network, a, circuitId } = await startCircuit()
  await using _ = network
  const [r1, r2, r3] = [network.routers.get('r1'), network.routers.get('r2'), network.routers.get('r3')]
  await dial(a, r1)
  network.links.splice(0, 1, 'r1-r3')
  await network.replica('b').leaveLink('r1-r2')
  expect(await pathOf(network, circuitId)).toEqual({
    router_ids: ['r2', 'r3', 'r1'],
    link_ids: ['r2-r3', 'r1-r3'],
    moving_until: null,
  })
  const moves = [r2, r3, r1].map(({ routes }) => routes.filter(({ attempt }) => attempt === 99969996))
  expect(moves.map(({ length }) => length)).toEqual([1, 1, 1])
  const ends = new Set([...(r1.circuits.get(circuitId) ?? []), ...(r2.circuits.get(circuitId) ?? [])])
  expect(ends.size).toBe(2)
  expect(moves.flat().every(({ egress }) => egress === undefined)).toBe(true)
  expect(network.events.at(-1)).toMatchObject({
    event_type: 'pathUpdated',
    circuit_id: circuitId,
    link_count: 2,
  })
})

test('routers that a circuit leaves forget it', async () => {
  const { network, a, circuitId } = await startCircuit()
  await using _ = network
  const r3 = network.routers.get('r3')
  network.links.splice(0, 1, 'r1-r3')
  await a.leaveLink('r1-r2')
  network.links.push('r1-r2#2')
  await a.leaveLink('r1-r3')
  expect(r3.unroutes).toEqual([{ circuitId, now: true }])
  expect(await pathOf(network, circuitId)).toMatchObject({ link_ids: ['r1-r2#2'] })
})

test('a circuit without another path ends', async () => {
  const { network, a, circuitId } = await startCircuit()
  await using _ = network
  network.links.splice(0, 1)
  await a.leaveLink('r1-r2')
  expect(await network.circuits()).toEqual([])
  expect(network.routers.get('r1').unroutes).toEqual([{ circuitId, now: true }])
})

test('a circuit stays while the router where it ends is offline', async () => {
  const { network, a, circuitId } = await startCircuit()
  await using _ = network
  network.routers.get('r1').isOnline = false
  await a.leaveLink('r1-r2')
  expect(await pathOf(network, circuitId)).toMatchObject({ link_ids: ['r1-r2'], moving_until: null })
})

test('a router that cannot forward a circuit gets its route again', async () => {
  const { network, a, circuitId } = await startCircuit()
  await using _ = network
  const r2 = network.routers.get('r2')
  r2.circuits.delete(circuitId)
  await receive(a, r2, fault(FaultSubject.FORWARD, circuitId))
  expect(r2.circuits.has(circuitId)).toBe(true)
})

test('a circuit whose end is gone at its router is not dialed again, and ends', async () => {
  const { network, a, circuitId } = await startCircuit()
  await using _ = network
  const r1 = network.routers.get('r1')
  r1.circuits.delete(circuitId)
  await receive(a, network.routers.get('r2'), fault(FaultSubject.FORWARD, circuitId))
  expect(await network.circuits()).toEqual([])
  expect(r1.routes.filter(({ egress }) => egress)).toHaveLength(1)
})

test('two replicas that are asked to move a circuit leave it with one path', async () => {
  const { network, a, circuitId } = await startCircuit()
  await using _ = network
  const b = network.replica('b')
  network.links.splice(0, 1, 'r1-r3')
  await Promise.all([a.leaveLink('r1-r2'), b.leaveLink('r1-r2'), a.leaveLink('r1-r2')])
  for (;;) {
    const path = await pathOf(network, circuitId)
    if (path?.moving_until) continue
    expect(path).toMatchObject({ link_ids: ['r2-r3', 'r1-r3'] })
    break
  }
})

test('a request to move a circuit that another replica moves makes that one move it again', async () => {
  const { network, circuitId } = await startCircuit()
  await using _ = network
  const { db } = network
  const [claimed] = await claimMoves(db, [circuitId])
  expect(await claimMoves(db, [circuitId])).toEqual([])
  const { rows } = await db.query<{ version: number }>(sql`select version from circuit`)
  const { version = 0 } = claimed ?? {}
  expect(rows[0]?.version).toBe(version + 1)
  const former = { id: circuitId, version, routerIds: ['r2', 'r1'], linkIds: ['other'] }
  expect(await savePaths(db, [former])).toEqual([])
  expect(await completeMoves(db, [former])).toEqual(new Set())
})

test('circuits of a router that is gone end where they begin or end, and move elsewhere', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const ends = await dial(a, network.routers.get('r2'))
  const moves = await dial(a, network.routers.get('r3'))
  network.links.push('r1-r3')
  network.routers.get('r2').isOnline = false
  await a.leaveRouter('r2')
  expect(await network.circuits()).toEqual([moves.circuitId])
  expect(await pathOf(network, moves.circuitId)).toMatchObject({ link_ids: ['r1-r3'] })
  expect(network.routers.get('r1').unroutes).toEqual([{ circuitId: ends.circuitId, now: true }])
})

test('circuits of a deleted router end at once', async () => {
  await using network = await startNetwork()
  await dial(network.replica('a'), network.routers.get('r2'))
  network.deleteRouter('r2')
  while ((await network.circuits()).length > 0);
})
