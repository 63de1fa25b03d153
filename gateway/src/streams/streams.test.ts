import { once } from 'node:events'
import { Duplex } from 'node:stream'
import { contentType, decodeBool, decodeText, headerKey, type Message, openChannel } from '@overlay/channel'
import { Fault } from '@overlay/rpc'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createWebSocketStream, WebSocket } from 'ws'
import { ADMIN, ALICE, PARTIAL_ADMIN } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'
import { openManagementChannel } from './management-channel.js'

const STREAM_EVENTS_REQUEST = 10040

let gateway: TestGateway
let opened: WebSocket[] = []
beforeEach(async () => {
  gateway = await startGateway()
})
afterEach(async () => {
  for (const ws of opened) ws.terminate()
  opened = []
  await gateway[Symbol.asyncDispose]()
})

function connect(token: string | undefined, path = '/fabric/v1/ws-api'): WebSocket {
  const ws = new WebSocket(`wss://127.0.0.1:${gateway.port}${path}`, {
    rejectUnauthorized: false,
    headers: token === undefined ? {} : { 'zt-session': token },
  })
  opened.push(ws)
  return ws
}

/** The status with which the connection is refused. */
async function refusalOf(ws: WebSocket): Promise<number | undefined> {
  ws.on('error', () => undefined)
  const [, response] = await once(ws, 'unexpected-response')
  return response.statusCode
}

async function openStream(token = ADMIN) {
  const ws = connect(token)
  await once(ws, 'open')
  const received: Message[] = []
  let wake = (): void => undefined
  const channel = openChannel(createWebSocketStream(ws), {
    heartbeatMs: Number.POSITIVE_INFINITY,
    onMessage(message) {
      received.push(message)
      wake()
    },
  })
  return {
    ws,
    async ask(type: number, request: unknown) {
      const answer = await channel.request({ type, body: Buffer.from(JSON.stringify(request)) }, 30_000)
      expect(answer.type).toBe(contentType.result)
      const success = answer.headers.get(headerKey.resultSuccess)
      return { isSuccess: success !== undefined && decodeBool(success), text: decodeText(answer.body) }
    },
    /** The next event with its type. */
    async next() {
      while (received.length === 0)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      const { headers, body } = received.shift() as Message
      return { type: headers.get(10)?.toString(), event: JSON.parse(body.toString()) as unknown }
    },
  }
}

const subscribe = (...types: (string | object)[]) => ({
  format: 'json',
  subscriptions: types.map((type) => (typeof type === 'string' ? { type } : type)),
})

test('an administrator receives the events of its subscriptions, and no others', async () => {
  const stream = await openStream()
  const circuits = { type: 'fabric.circuits', options: { include: ['deleted'] } }
  const answer = await stream.ask(STREAM_EVENTS_REQUEST, subscribe('fabric.routers', circuits))
  expect(answer).toEqual({ isSuccess: true, text: 'success' })
  const online = { namespace: 'fabric.routers', event_type: 'router-online', router_id: 'r1' }
  const deleted = { namespace: 'fabric.circuits', event_type: 'deleted', circuit_id: 'c1' }
  gateway.fakes.emit({ namespace: 'edge.sessions', event_type: 'created' })
  gateway.fakes.emit(online)
  gateway.fakes.emit({ ...deleted, event_type: 'created' })
  gateway.fakes.emit(deleted)
  expect(await stream.next()).toEqual({ type: 'router', event: online })
  expect(await stream.next()).toEqual({ type: 'circuit', event: deleted })
})

test('newer clients name events by their type', async () => {
  const stream = await openStream()
  await stream.ask(STREAM_EVENTS_REQUEST, subscribe('circuit', 'alert'))
  const circuit = { namespace: 'fabric.circuits', event_type: 'created', circuit_id: 'c1' }
  const alert = { namespace: 'alert', alert_source_id: 'r1' }
  gateway.fakes.emit({ namespace: 'fabric.routers', event_type: 'router-online' })
  gateway.fakes.emit(circuit)
  gateway.fakes.emit(alert)
  expect(await stream.next()).toEqual({ type: 'circuit', event: circuit })
  expect(await stream.next()).toEqual({ type: 'alert', event: alert })
})

test('counts of entities come at once, and in the interval of the request', async () => {
  const stream = await openStream()
  await stream.ask(
    STREAM_EVENTS_REQUEST,
    subscribe({ type: 'edge.entityCounts', options: { interval: '0h0m1s' } }),
  )
  for (const _ of [1, 2])
    expect(await stream.next()).toMatchObject({
      type: 'entityCount',
      event: { namespace: 'edge.entityCounts', counts: { services: 1 }, error: '' },
    })
})

test('a change of a service is two events after its commit, and those before the stream are none', async () => {
  const event = (number: number) => ({ eventId: `policy.${number}`, finalState: { name: 'wiki' } })
  gateway.fakes.audit('policy', { atMs: 2000, event: event(1) })
  const stream = await openStream()
  await stream.ask(STREAM_EVENTS_REQUEST, subscribe('entityChange'))
  gateway.fakes.audit('policy', { atMs: 3000, event: event(2) })
  expect(await stream.next()).toEqual({ type: 'entity.change', event: event(2) })
  const timestamp = '1970-01-01T00:00:03.000Z'
  const committed = { namespace: 'entityChange', eventId: 'policy.2', eventType: 'committed', timestamp }
  expect(await stream.next()).toEqual({ type: 'entity.change', event: committed })
})

test('changes while a service does not answer arrive afterwards', async () => {
  const stream = await openStream()
  await stream.ask(STREAM_EVENTS_REQUEST, subscribe('entityChange'))
  const isAsked = new Promise<void>((resolve) => {
    gateway.fakes.instead.set('pki.audit.list', async () => {
      resolve()
      throw new Fault('UNAVAILABLE')
    })
  })
  gateway.fakes.audit('policy', { atMs: 3000, event: { eventId: 'policy.1' } })
  await isAsked
  gateway.fakes.audit('pki', { atMs: 2000, event: { eventId: 'pki.1' } })
  gateway.fakes.instead.delete('pki.audit.list')
  const ids: unknown[] = []
  for (let n = 0; n < 4; n++) ids.push(((await stream.next()).event as { eventId: string }).eventId)
  expect(ids).toEqual(['pki.1', 'pki.1', 'policy.1', 'policy.1'])
})

test('the audit is read only while a stream wants changes, of the types that it includes', async () => {
  const stream = await openStream()
  await stream.ask(STREAM_EVENTS_REQUEST, subscribe('fabric.routers'))
  expect(gateway.fakes.called('policy.audit.list')).toBe(0)
  const include = ['identities']
  await stream.ask(
    STREAM_EVENTS_REQUEST,
    subscribe({ type: 'entityChange', options: { include } }, 'fabric.routers'),
  )
  gateway.fakes.audit('policy', { atMs: 3000, event: {} }) // of services
  const asked = gateway.fakes.called('policy.audit.list')
  await expect.poll(() => gateway.fakes.called('policy.audit.list')).toBeGreaterThan(asked + 1)
  gateway.fakes.emit({ namespace: 'fabric.routers' })
  expect(await stream.next()).toMatchObject({ type: 'router' })
})

test('streams share one source of events, which ends with the last of them', async () => {
  const [one, two] = [await openStream(), await openStream()]
  for (const stream of [one, two]) await stream.ask(STREAM_EVENTS_REQUEST, subscribe('fabric.routers'))
  expect(gateway.fakes.called('sessions.watchEvents')).toBe(1)
  const source = gateway.fakes.calls.find(({ method }) => method === 'sessions.watchEvents')?.context.signal
  one.ws.close()
  two.ws.close()
  if (!source?.aborted) await once(source as AbortSignal, 'abort')
  expect(source?.aborted).toBe(true)
})

test('only administrators with all their factors open a stream', async () => {
  for (const token of [undefined, ALICE, PARTIAL_ADMIN, '44444444-4444-4444-8444-444444444444'])
    expect(await refusalOf(connect(token))).toBe(401)
})

test('other paths have no stream, which callers without a session are not told', async () => {
  expect(await refusalOf(connect(undefined, '/fabric/v1/routers'))).toBe(401)
  expect(await refusalOf(connect(ADMIN, '/fabric/v1/routers'))).toBe(404)
})

test('a stream ends with its session', async () => {
  const { ws } = await openStream()
  const closed = once(ws, 'close')
  const session = gateway.fakes.sessions.get(ADMIN)
  gateway.fakes.sessions.delete(ADMIN)
  gateway.fakes.change('identity', [{ kind: 'api-sessions', id: session?.id ?? '' }])
  const [code, reason] = await closed
  expect([code, String(reason)]).toEqual([1008, 'the session has ended'])
})

test('a stream ends when its identity is no administrator any more', async () => {
  const { ws } = await openStream()
  const closed = once(ws, 'close')
  const session = gateway.fakes.sessions.get(ADMIN)
  if (!session) throw new Error('no session')
  gateway.fakes.sessions.set(ADMIN, { ...session, isAdmin: false })
  gateway.fakes.change('identity', [{ kind: 'identities', id: session.identityId }])
  expect((await closed)[0]).toBe(1008)
})

test('one source may have some streams, and others when these are closed', async () => {
  const streams = [await openStream(), await openStream(), await openStream()]
  expect(await refusalOf(connect(ADMIN))).toBe(429)
  streams[0]?.ws.close()
  for (;;) {
    const ws = connect(ADMIN)
    const isOpen = await Promise.race([once(ws, 'open').then(() => true), refusalOf(ws).then(() => false)])
    if (isOpen) break
  }
})

test.each([
  ['a text', STREAM_EVENTS_REQUEST, 'nonsense', 'the request is not a JSON object'],
  [
    'another format',
    STREAM_EVENTS_REQUEST,
    { format: 'plain', subscriptions: [] },
    "invalid format ['plain']",
  ],
  [
    'no subscriptions',
    STREAM_EVENTS_REQUEST,
    { format: 'json' },
    'expected a list of at most 100 subscriptions',
  ],
  [
    'an interval that is no duration',
    STREAM_EVENTS_REQUEST,
    subscribe({ type: 'edge.entityCounts', options: { interval: 'soon' } }),
    "invalid duration value for edge.entityCounts interval: 'soon'",
  ],
  [
    'an interval that is too long to be read',
    STREAM_EVENTS_REQUEST,
    subscribe({ type: 'edge.entityCounts', options: { interval: `${'1'.repeat(64)}s` } }),
    `invalid duration value for edge.entityCounts interval: '${'1'.repeat(64)}'`,
  ],
  ['an unknown request', 10046, {}, 'requests of type 10046 are not supported'],
])('%s is refused, and the stream stays', async (_, type, request, text) => {
  const stream = await openStream()
  expect(await stream.ask(type, request)).toEqual({ isSuccess: false, text })
  expect((await stream.ask(STREAM_EVENTS_REQUEST, subscribe('unknown'))).isSuccess).toBe(true)
})

test('bytes that are no frame end the stream', async () => {
  const { ws } = await openStream()
  const closed = once(ws, 'close')
  ws.send(Buffer.alloc(64, 1))
  await closed
})

test('a client that does not read loses its stream', async () => {
  let emit: (json: Buffer) => void = () => undefined
  const events = {
    ready: async () => undefined,
    listen(listener: (event: { namespace: string; type: string; json: Buffer }) => void) {
      emit = (json) => listener({ namespace: 'fabric.routers', type: '', json })
      return { [Symbol.dispose]: () => undefined }
    },
    [Symbol.asyncDispose]: async () => undefined,
  }
  const [client, server] = pair()
  const deps = { events, changes: events, countEntities: async () => ({}), validate: async function* () {} }
  const channel = openManagementChannel(server, deps)
  const asking = openChannel(client, { onMessage: () => undefined, heartbeatMs: Number.POSITIVE_INFINITY })
  const body = Buffer.from(JSON.stringify(subscribe('fabric.routers')))
  await asking.request({ type: STREAM_EVENTS_REQUEST, body }, 30_000)
  client.pause()
  for (let sent = 0; sent < 100 && !channel.closed.aborted; sent++) emit(Buffer.alloc(64 * 1024))
  expect(channel.closed.reason).toMatchObject({ message: 'the peer does not read' })
})

/** Two connected streams. What one has written waits until the other reads it. */
function pair(): readonly [Duplex, Duplex] {
  const end = (other: () => Duplex): Duplex => {
    let written = (): void => undefined
    return new Duplex({
      read: () => written(),
      write(chunk, _encoding, callback) {
        const target = other()
        if (target.push(chunk)) callback()
        else written = callback
      },
    })
  }
  const one: Duplex = end(() => two)
  const two: Duplex = end(() => one)
  return [one, two]
}
