import { ctrlType, type Message, type Outgoing } from '@overlay/channel'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RouterOffline } from '../src/channel/router-channel.js'
import { commandSubject } from '../src/relay/router-command.js'
import { type Replica, startControlNetwork, type TestNetwork } from './control.js'
import { connectRouter, type TestRouter } from './test-router.js'

const TYPE = ctrlType.inspectRequest
const request = (text: string): Outgoing => ({
  type: TYPE,
  headers: new Map([[128, Buffer.from('reflected')]]),
  body: Buffer.from(text),
})
const silent = { onMessage: () => undefined }

let network: TestNetwork
let one: Replica
let two: Replica
beforeAll(async () => {
  network = await startControlNetwork({ hasBus: true })
  one = await network.replica('one')
  two = await network.replica('two.with a strange*id')
})
afterAll(() => network[Symbol.asyncDispose]())

/** A router that is connected to the replica `two`, as both replicas know. */
async function connectToTwo(name: string, options: object = {}): Promise<{ id: string; router: TestRouter }> {
  const key = await network.createRouter(name)
  const router = await connectRouter({ port: two.port, key, ...options })
  await expect.poll(() => one.control.presence.isOnline(key.id)).toBe(true)
  return { id: key.id, router }
}
const textsOf = ({ received }: TestRouter) =>
  received.filter(({ type }) => type === TYPE).map(({ body }: Message) => body.toString())
const commands = async () => {
  const { rows } = await network.db.query<{ count: number }>(sql`select count(*) from router_command`)
  return rows[0]?.count
}

test('a request reaches a router of another replica, and its reply comes back', async () => {
  const { id } = await connectToTwo('a')
  const reply = await one.control.messages.request(id, request('hello'), 30_000)
  expect(reply.body.toString()).toBe('hello')
  expect(reply.headers.get(128)?.toString()).toBe('reflected')
  expect(await commands()).toBe(0) // the bus is enough
})

test('a message reaches a router of another replica', async () => {
  const { id, router } = await connectToTwo('b', silent)
  one.control.messages.send(id, request('sent'))
  await router.message(TYPE)
  expect(textsOf(router)).toEqual(['sent'])
})

test('a router of this replica is not asked through another one', async () => {
  const { id, router } = await connectToTwo('c')
  const key = await network.createRouter('c2')
  expect(await two.control.messages.request(id, request('direct'), 30_000)).toMatchObject({
    type: ctrlType.inspectResponse,
  })
  expect(textsOf(router)).toEqual(['direct'])
  await expect(two.control.messages.request(key.id, request('x'), 30_000)).rejects.toThrow(RouterOffline)
})

test('a request to a router that is connected to several replicas goes to one of them', async () => {
  const { id, router } = await connectToTwo('d')
  const three = await network.replica('three')
  const four = await network.replica('four')
  const key = { ...(await network.createRouter('d2')) }
  const other = await connectRouter({ port: three.port, key })
  const both = await connectRouter({ port: two.port, key })
  await expect.poll(() => four.control.presence.of(key.id)).toHaveLength(2)
  await four.control.messages.request(key.id, request('once'), 30_000)
  expect([...textsOf(other), ...textsOf(both)]).toEqual(['once'])
  expect(textsOf(router)).toEqual([])
  expect(four.control.presence.isOnline(id)).toBe(true)
  await three[Symbol.asyncDispose]()
  await four[Symbol.asyncDispose]()
})

test('an answer that is too large for the bus comes back', async () => {
  const body = Buffer.alloc(2 * 1024 * 1024, 'x')
  const { id } = await connectToTwo('large', {
    onMessage: ({ type }: Message): Outgoing | undefined =>
      type === TYPE ? { type: ctrlType.inspectResponse, body } : undefined,
  })
  const reply = await one.control.messages.request(id, request('all'), 10_000)
  expect(reply.body.equals(body)).toBe(true)
  expect(await commands()).toBe(0) // taken with the answer
})

test('while the bus is away, requests and messages go through the database', async () => {
  const { id, router } = await connectToTwo('e')
  await network.bus?.stop()
  const reply = await one.control.messages.request(id, request('by the table'), 30_000)
  expect(reply.body.toString()).toBe('by the table')
  one.control.messages.send(id, request('sent'))
  await expect.poll(() => textsOf(router)).toEqual(['by the table', 'sent'])
  await network.bus?.start()
})

test('a command that nothing acknowledges goes through the database', async () => {
  const { id } = await connectToTwo('f')
  const { control, bus } = two
  await expect.poll(() => bus.connected() && one.bus.connected()).toBe(true)
  await control.messages.request(id, request('warm'), 30_000)
  const deaf = await network.replica('deaf', {
    bus: { ...one.bus, publish: () => undefined }, // what it publishes is lost
  })
  await expect.poll(() => deaf.control.presence.isOnline(id)).toBe(true)
  expect((await deaf.control.messages.request(id, request('late'), 30_000)).body.toString()).toBe('late')
  await deaf[Symbol.asyncDispose]()
})

test('a command that arrives twice is executed once', async () => {
  const { id, router } = await connectToTwo('g', silent)
  const command = {
    id: '0a1b2c3d-0000-4000-8000-000000000000',
    from: 'test',
    routerId: id,
    message: { type: TYPE, headers: [], body: Buffer.from('twice').toString('base64') },
    timeoutMs: 0,
  }
  await network.db.query(sql`
    insert into router_command (id, replica_id, command, ends_at)
    values (${command.id}, ${two.id}, ${JSON.stringify(command)}, now() + interval '1 minute')`)
  for (const _ of [1, 2]) one.bus.publish(commandSubject(two.id), command)
  await expect.poll(() => commands()).toBe(1)
  await expect
    .poll(
      async () => (await network.db.query(sql`select from router_command where answer is not null`)).rowCount,
    )
    .toBe(1)
  expect(textsOf(router)).toEqual(['twice'])
})

test('a request to a router that does not answer fails in time', async () => {
  const { id } = await connectToTwo('h', silent)
  await expect(one.control.messages.request(id, request('?'), 200)).rejects.toThrow('no answer')
})

test('a request to an offline router fails', async () => {
  const { id, router } = await connectToTwo('i')
  router.channel.close('done')
  await expect.poll(() => one.control.presence.isOnline(id)).toBe(false)
  await expect(one.control.messages.request(id, request('?'), 30_000)).rejects.toThrow(RouterOffline)
})
