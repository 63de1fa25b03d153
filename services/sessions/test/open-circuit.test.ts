import {
  circuitRequestHeader,
  ctrlType,
  edgeType,
  encodeText,
  encodeUint32,
  errorHeader,
  peerDataKey,
  routeErrorCode,
} from '@overlay/channel'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { NO_FEATURES } from '../src/domain/router-features.js'
import { routePath } from '../src/store/circuit.js'
import { answerIn, circuitRequest, dial } from './circuit-messages.js'
import { ask, receive, startNetwork, target } from './circuit-replicas.js'
import { waitingFor } from './store.js'

test('a circuit on one router is saved before it is answered', async () => {
  await using network = await startNetwork()
  const replica = network.replica('a')
  const r1 = network.routers.get('r1')
  r1.hostHeaders = new Map([
    [5, Buffer.from('heartbeat')],
    [1003, Buffer.from('key')],
    [1110, Buffer.from('10.0.0.1:1')],
  ])
  const peerData = new Map([[1008, Buffer.from('alice')]])
  const opened = await dial(replica, r1, { peerData })
  expect(Object.fromEntries([...opened.peerData].map(([key, value]) => [key, value.toString()]))).toEqual({
    1003: 'key',
    1114: 'sticky',
  })
  expect(opened.tags).toEqual({ serviceId: 'wiki', clientId: 'alice', hostId: 'bob' })
  const [route] = r1.routes
  const { circuitId, egress, forwards = [] } = route ?? {}
  expect(circuitId).toBe(opened.circuitId)
  expect(egress).toMatchObject({ binding: 'edge', destination: 't1', peerData })
  expect(
    forwards.map(({ sourceAddress, destinationAddress }) => [sourceAddress, destinationAddress]),
  ).toEqual([
    [opened.address, egress?.address],
    [egress?.address, opened.address],
  ])
  const { rows } = await network.db.query(sql`
    select controller_id, client_id, service_id, terminator_id, identity_id, host_id, router_ids, ingress_address,
           terminator_local_address from circuit where id = ${opened.circuitId}`)
  expect(rows).toEqual([
    {
      controller_id: 'a',
      client_id: 's1',
      service_id: 'wiki',
      terminator_id: 't1',
      identity_id: 'alice',
      host_id: 'bob',
      router_ids: ['r1'],
      ingress_address: opened.address,
      terminator_local_address: '10.0.0.1:1',
    },
  ])
  expect(network.dials).toEqual(['t1 succeeded', 't1 opened'])
  expect(network.events).toMatchObject([
    { namespace: 'fabric.circuits', event_type: 'created', circuit_id: opened.circuitId, link_count: 0 },
  ])
})

test('a circuit over several routers is set up on all of them, and is the route path of its session', async () => {
  await using network = await startNetwork()
  await dial(network.replica('a'), network.routers.get('r3'))
  const routes = ['r3', 'r2', 'r1'].map((id) => network.routers.get(id).routes)
  expect(routes.map(({ length }) => length)).toEqual([1, 1, 1])
  expect(routes.map(([route]) => route?.egress?.destination)).toEqual([undefined, undefined, 't1'])
  const path = await routePath(network.db, 's1', { identityId: 'alice', isAdmin: false })
  expect(path).toEqual(['r3', 'r2', 'r1'])
})

test('after a failure another terminator is selected, and the first circuit is undone', async () => {
  await using network = await startNetwork()
  network.targets.push(target('t2', 'r2'))
  const [r1, r2] = [network.routers.get('r1'), network.routers.get('r2')]
  r1.answer = ({ egress }) =>
    egress ? { code: routeErrorCode.connectionRefused, error: 'refused' } : undefined
  const opened = await dial(network.replica('a'), r2)
  expect(r2.routes.map(({ egress }) => egress?.destination)).toEqual([undefined, 't2'])
  const [failed] = r1.routes
  expect(r2.unroutes).toEqual([{ circuitId: failed?.circuitId, now: true }])
  expect([...r2.circuits.keys()]).toEqual([opened.circuitId])
  expect(network.dials).toEqual(['t1 failed', 't2 succeeded', 't2 opened'])
  expect(network.events.map(({ event_type, failure_cause }) => [event_type, failure_cause])).toEqual([
    ['failed', 'ROUTER_ERR_CONN_REFUSED'],
    ['created', undefined],
  ])
})

test('a circuit that fails twice is refused with the text of the router, and leaves nothing behind', async () => {
  await using network = await startNetwork()
  const [r1, r2] = [network.routers.get('r1'), network.routers.get('r2')]
  r1.answer = () => ({ code: routeErrorCode.generic, error: 'host says no' })
  const answer = answerIn(await ask(network.replica('a'), r2, circuitRequest()))
  expect(answer).toEqual({ code: 1, text: 'router r1: host says no' })
  expect(r2.replies.map(({ headers }) => headers?.has(errorHeader.circuitId))).toEqual([false])
  expect(r1.routes).toHaveLength(2)
  expect(r2.circuits.size).toBe(0)
  expect(await network.circuits()).toEqual([])
})

test('a router with the data model learns which circuit could not be set up', async () => {
  await using network = await startNetwork()
  const [r1, r2] = [network.routers.get('r1'), network.routers.get('r2')]
  r1.answer = () => ({ code: routeErrorCode.generic, error: 'host says no' })
  const current = { ...r2, channel: { ...r2.channel, features: { ...NO_FEATURES, hasDataModel: true } } }
  const a = network.replica('a')
  const { headers } = await ask(a, current, circuitRequest())
  expect(headers?.get(errorHeader.circuitId)?.toString()).toBe(r1.routes.at(-1)?.circuitId)
  network.targets.splice(0) // no circuit is set up
  const second = await ask(a, current, circuitRequest())
  expect(second.headers?.has(errorHeader.circuitId)).toBe(false)
})

test.each([
  ['edge', routeErrorCode.invalidTerminator, 0, []],
  ['transport', routeErrorCode.invalidTerminator, 1, ['t1 marked']],
  ['edge', routeErrorCode.misconfiguredTerminator, 1, ['t1 marked']],
  ['edge', routeErrorCode.dialTimedOut, 1, []],
])(
  'a terminator of binding %s that fails with code %i is deleted, marked or kept',
  async (binding, code, left, marked) => {
    await using network = await startNetwork()
    network.targets.splice(0, 1, target('t1', 'r1', { binding }))
    const r1 = network.routers.get('r1')
    r1.answer = ({ attempt }) => (attempt === 0 ? { code, error: 'no' } : undefined)
    await ask(network.replica('a'), r1, circuitRequest())
    expect(network.targets).toHaveLength(left)
    expect(network.dials.filter((dial) => dial.endsWith('marked'))).toEqual(marked)
  },
)

test('a link that a router of the path does not have is dropped, and the circuit takes another path', async () => {
  await using network = await startNetwork()
  network.links.push('r1-r2#2')
  const r2 = network.routers.get('r2')
  r2.answer = ({ forwards }) =>
    forwards.some(({ destinationAddress }) => destinationAddress === 'r1-r2')
      ? { code: routeErrorCode.unknownLink, error: 'invalid link destination r1-r2' }
      : undefined
  const { circuitId } = await dial(network.replica('a'), network.routers.get('r3'))
  expect(network.links).toEqual(['r2-r3', 'r3-r4', 'r1-r2#2'])
  const { rows } = await network.db.query(sql`select link_ids from circuit where id = ${circuitId}`)
  expect(rows).toEqual([{ link_ids: ['r2-r3', 'r1-r2#2'] }])
  expect(network.dials).toEqual(['t1 succeeded', 't1 opened'])
  expect(network.events[0]).toMatchObject({ failure_cause: 'ROUTER_ERR_INVALID_LINK_DESTINATION' })
})

test('a route that is reported after the failure of another one is undone', async () => {
  await using network = await startNetwork()
  const replica = network.replica('a')
  const r1 = network.routers.get('r1')
  const headers = new Map([
    [1101, encodeUint32(0)],
    [1102, Buffer.from([1])],
  ])
  const { circuitId } = await dial(replica, r1)
  await receive(replica, r1, { type: ctrlType.routeResult, headers, body: encodeText('gone') })
  await receive(replica, r1, { type: ctrlType.routeResult, headers, body: encodeText(circuitId) })
  expect(r1.unroutes).toEqual([{ circuitId: 'gone', now: true }])
})

test.each([
  ['an unknown session', { sessionToken: 'forged' }, 3],
  ['an unknown instance', { instanceId: 'x' }, 8],
])('a request for %s is refused with its code', async (_, request, code) => {
  await using network = await startNetwork()
  const answer = answerIn(await ask(network.replica('a'), network.routers.get('r1'), circuitRequest(request)))
  expect(answer).toMatchObject({ code })
})

test('a service that requires encryption needs the keys of both sides', async () => {
  await using network = await startNetwork()
  const replica = network.replica('a')
  const r1 = network.routers.get('r1')
  const wiki = network.services.get('wiki')
  if (wiki) network.services.set('wiki', { ...wiki, encryptionRequired: true })
  const withKey = circuitRequest({ peerData: new Map([[peerDataKey.publicKey, Buffer.from('key')]]) })
  expect(answerIn(await ask(replica, r1, circuitRequest()))).toMatchObject({ code: 11 })
  expect(r1.routes).toEqual([])
  expect(answerIn(await ask(replica, r1, withKey))).toMatchObject({ code: 11 })
  expect(r1.circuits.size).toBe(0)
  network.targets.splice(0, 1, target('t1', 'r1', { peerData: new Map([[1003, Buffer.from('key')]]) }))
  expect(answerIn(await ask(replica, r1, withKey))).toHaveProperty('circuitId')
})

test('a session that ends while its circuit is set up gets none', async () => {
  await using network = await startNetwork()
  const { db } = network
  const replica = network.replica('a')
  const r1 = network.routers.get('r1')
  const [deleted, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const ending = db.transaction(undefined, async (tx) => {
    await tx.query(sql`delete from session where id = 's1'`)
    deleted.resolve()
    await commit.promise
  })
  await deleted.promise
  const reply = ask(replica, r1, circuitRequest())
  await waitingFor(db)
  commit.resolve()
  await ending
  expect(answerIn(await reply)).toMatchObject({ code: 3 })
  expect(await network.circuits()).toEqual([])
  expect(r1.circuits.size).toBe(0)
})

test('requests of a router that are too many at once are refused, and those of another router are not', async () => {
  await using network = await startNetwork()
  const replica = network.replica('a')
  const [r1, r2] = [network.routers.get('r1'), network.routers.get('r2')]
  r1.answer = () => 'silent'
  for (let i = 0; i < 256; i++) await receive(replica, r1, circuitRequest())
  expect(answerIn(await ask(replica, r1, circuitRequest()))).toMatchObject({
    code: 1,
    text: expect.stringContaining('too many'),
  })
  network.targets.unshift(target('t2', 'r2'))
  await dial(replica, r2)
})

test('values of a client beyond the limits refuse its request and keep the channel', async () => {
  await using network = await startNetwork()
  const request = circuitRequest()
  const tooLarge = Buffer.concat([...[1, 1011, 9000].map(encodeUint32), Buffer.alloc(9000)])
  const headers = new Map([...(request.headers ?? []), [circuitRequestHeader.peerData, tooLarge] as const])
  const reply = await ask(network.replica('a'), network.routers.get('r1'), { ...request, headers })
  expect(answerIn(reply)).toEqual({ code: 1, text: 'malformed request' })
})

test('an instance that cannot exist is refused, and addresses that cannot be shown are left out', async () => {
  await using network = await startNetwork()
  const replica = network.replica('a')
  const r1 = network.routers.get('r1')
  const answer = await ask(replica, r1, circuitRequest({ instanceId: '<script>' }))
  expect(answerIn(answer)).toMatchObject({ text: 'invalid instance id' })
  r1.hostHeaders = new Map([[1110, Buffer.from('10.0.0.1:1\0')]])
  const { circuitId } = await dial(replica, r1)
  const { rows } = await network.db.query(
    sql`select terminator_local_address from circuit where id = ${circuitId}`,
  )
  expect(rows).toEqual([{ terminator_local_address: '' }])
})

test('the older request is answered in its own form', async () => {
  await using network = await startNetwork()
  const replica = network.replica('a')
  const r1 = network.routers.get('r1')
  const { CreateCircuitRequest, CreateCircuitResponse } = await import('@overlay/channel')
  const body = CreateCircuitRequest.encode({
    sessionToken: 'token of s1',
    fingerprints: ['f'],
    terminatorInstanceId: '',
    peerData: new Map(),
    apiSessionToken: '',
  }).finish()
  const reply = await ask(replica, r1, { type: edgeType.createCircuit, body })
  expect(reply.type).toBe(edgeType.createCircuitResponse)
  const { circuitId, tags } = CreateCircuitResponse.decode(reply.body ?? Buffer.alloc(0))
  expect(await network.circuits()).toEqual([circuitId])
  expect(tags.get('clientId')).toBe('alice')
})

test('a client of a router of 2.1 dials with its access token, and without a session', async () => {
  await using network = await startNetwork()
  const replica = network.replica('a')
  const r1 = network.routers.get('r1')
  const request = (token: string) => ({
    type: edgeType.createCircuitV3,
    headers: new Map([
      [circuitRequestHeader.apiSessionToken, encodeText(token)],
      [circuitRequestHeader.identityId, encodeText('alice')],
      [circuitRequestHeader.serviceId, encodeText('wiki')],
      [circuitRequestHeader.circuitId, encodeText('mine')],
    ]),
  })
  expect(answerIn(await ask(replica, r1, request('access of bob')))).toMatchObject({ code: 2 })
  const reply = await ask(replica, r1, request('access of alice'))
  expect(reply.type).toBe(edgeType.createCircuitV3Response)
  const opened = answerIn(reply)
  expect(opened).toMatchObject({ tags: { clientId: 'alice', serviceId: 'wiki' } })
  const [circuitId] = await network.circuits()
  expect(opened).toMatchObject({ circuitId })
  expect(circuitId).not.toBe('mine')
})

test('a request without a session is refused', async () => {
  await using network = await startNetwork()
  const reply = await ask(network.replica('a'), network.routers.get('r1'), { type: ctrlType.circuitRequest })
  expect(reply.type).toBe(ctrlType.circuitFailed)
})

test('a circuit ends if its answer cannot reach the router', async () => {
  await using network = await startNetwork()
  const r1 = network.routers.get('r1')
  network.targets.splice(0, 1, target('t1', 'r1', { peerData: new Map([[1003, Buffer.alloc(9000)]]) }))
  const reply = await ask(network.replica('a'), r1, circuitRequest())
  expect(answerIn(reply)).toEqual({ code: 1, text: 'internal error' })
  expect(await network.circuits()).toEqual([])
  expect(r1.circuits.size).toBe(0)
})
