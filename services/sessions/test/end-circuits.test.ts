import { FaultSubject } from '@overlay/channel'
import { expect, test } from 'vitest'
import { confirmation, dial, fault } from './circuit-messages.js'
import { addSession, receive, startNetwork } from './circuit-replicas.js'

test('a circuit that one end reports as closed ends at all its routers, through any replica', async () => {
  await using network = await startNetwork()
  const [a, b] = [network.replica('a'), network.replica('b')]
  const [r1, r2, r3] = [network.routers.get('r1'), network.routers.get('r2'), network.routers.get('r3')]
  const { circuitId } = await dial(a, r3)
  await Promise.all([
    receive(b, r3, fault(FaultSubject.INGRESS, circuitId)),
    receive(a, r1, fault(FaultSubject.EGRESS, circuitId)),
  ])
  for (const { unroutes } of [r1, r2, r3]) expect(unroutes).toEqual([{ circuitId, now: false }])
  expect(await network.circuits()).toEqual([])
  expect(network.events.map(({ event_type }) => event_type)).toEqual(['created', 'deleted'])
})

test('a router that a circuit does not run over cannot end it', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const { circuitId } = await dial(a, network.routers.get('r2'))
  for (const subject of [FaultSubject.INGRESS, FaultSubject.FORWARD])
    await receive(a, network.routers.get('r4'), fault(subject, circuitId))
  expect(await network.circuits()).toEqual([circuitId])
  expect(network.routers.get('r1').routes).toHaveLength(1)
})

test('a router that lies between the ends of a circuit cannot end it', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const { circuitId } = await dial(a, network.routers.get('r3'))
  await receive(a, network.routers.get('r2'), fault(FaultSubject.INGRESS, circuitId))
  expect(await network.circuits()).toEqual([circuitId])
})

test('circuits end with their session, and others stay', async () => {
  await using network = await startNetwork()
  await addSession(network.db, 's2')
  const a = network.replica('a')
  const r2 = network.routers.get('r2')
  const ended = await dial(a, r2)
  const stays = await dial(a, r2, { sessionToken: 'token of s2' })
  await network.replica('b').endOfSessions(['s1', 'other'])
  expect(await network.circuits()).toEqual([stays.circuitId])
  for (const id of ['r1', 'r2'])
    expect(network.routers.get(id).unroutes).toEqual([{ circuitId: ended.circuitId, now: true }])
})

test('a router that was offline when a circuit ended is told when it returns', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const [r1, r2] = [network.routers.get('r1'), network.routers.get('r2')]
  const { circuitId } = await dial(a, r2)
  r2.isOnline = false
  await a.endOfTerminators(['t1'])
  expect(r2.circuits.has(circuitId)).toBe(true)
  r2.isOnline = true
  await network.replica('b').connected?.(r2.channel)
  expect(r2.unroutes).toEqual([{ circuitId, now: true }])
  expect(r1.circuits.size).toBe(0)
})

test('an idle circuit is kept, one that does not exist is ended at the router that reports it', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const r1 = network.routers.get('r1')
  const { circuitId } = await dial(a, r1)
  await receive(a, r1, confirmation({ [circuitId]: 100_000, young: 10, unknown: 60 }))
  expect(r1.unroutes).toEqual([{ circuitId: 'unknown', now: true }])
  expect(await network.circuits()).toEqual([circuitId])
})

test('a circuit that leads elsewhere is ended at the router that reports it only', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const [r1, r4] = [network.routers.get('r1'), network.routers.get('r4')]
  const { circuitId } = await dial(a, r1)
  await receive(a, r4, confirmation({ [circuitId]: 60 }))
  expect(r4.unroutes).toEqual([{ circuitId, now: true }])
  expect(r1.unroutes).toEqual([])
  expect(await network.circuits()).toEqual([circuitId])
})

test('a circuit that is idle for longer than its service allows ends, if an end of it says so', async () => {
  await using network = await startNetwork()
  const wiki = network.services.get('wiki')
  if (wiki) network.services.set('wiki', { ...wiki, maxIdleTimeMillis: 120_000 })
  const a = network.replica('a')
  const [r2, r3] = [network.routers.get('r2'), network.routers.get('r3')]
  const { circuitId } = await dial(a, r3)
  await receive(a, r3, confirmation({ [circuitId]: 119 }))
  await receive(a, r2, confirmation({ [circuitId]: 120 }))
  expect(await network.circuits()).toEqual([circuitId])
  await receive(a, r3, confirmation({ [circuitId]: 120 }))
  expect(await network.circuits()).toEqual([])
})

test('a router is told to forget circuits that it cannot forward and that do not exist', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const r1 = network.routers.get('r1')
  await receive(a, r1, fault(FaultSubject.FORWARD, 'x y'))
  await receive(a, r1, fault(FaultSubject.FORWARD_UNKNOWN_OWNER, 'z'))
  expect(r1.unroutes.map(({ circuitId }) => circuitId)).toEqual(['x', 'y'])
})

test('only the replica that has opened a circuit counts its end', async () => {
  await using network = await startNetwork()
  const [a, b] = [network.replica('a'), network.replica('b')]
  const r1 = network.routers.get('r1')
  await b.end((await dial(a, r1)).circuitId)
  expect(network.dials).toEqual(['t1 succeeded', 't1 opened'])
  await a.end((await dial(a, r1)).circuitId)
  expect(network.dials.slice(2)).toEqual(['t1 succeeded', 't1 opened', 't1 closed'])
})

test('an administrator ends a circuit', async () => {
  await using network = await startNetwork()
  const a = network.replica('a')
  const r1 = network.routers.get('r1')
  const { circuitId } = await dial(a, r1)
  expect(await a.end('other')).toBe(false)
  expect(await a.end(circuitId)).toBe(true)
  expect(r1.unroutes).toEqual([{ circuitId, now: true }])
})
