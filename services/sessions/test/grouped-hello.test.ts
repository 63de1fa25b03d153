import { randomBytes } from 'node:crypto'
import {
  edgeType,
  encodeBits,
  encodeBool,
  encodeText,
  encodeVersion,
  groupedHeader,
  HELLO_LIMITS,
  headerKey,
  LinkListeners,
  type Message,
  modelHeader,
  readFirst,
} from '@overlay/channel'
import { metrics } from '@overlay/process'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { goldenFrames } from '../../../packages/channel/testing/golden-frames.js'
import { authority } from '../../identity/test/certificates.js'
import { type Replica, startControlNetwork, type TestNetwork } from './control.js'
import { connectRouter, groupedHello, openSocket, type RouterKey, untilClosed } from './test-router.js'

/** The routers of the recorded hellos. */
const [OLD, GROUPED] = ['golden.r1', '3AzI8EiBi']

let network: TestNetwork
let replica: Replica
let goldenKey: RouterKey
beforeAll(async () => {
  network = await startControlNetwork()
  goldenKey = await network.certify('golden')
  await network.db.query(sql`
    insert into router (id, name, is_edge, is_verified, fingerprint)
    select id, id, true, true, ${goldenKey.fingerprint} from unnest(${[OLD, GROUPED]}::text[]) as id`)
  replica = await network.replica()
})
afterAll(() => network[Symbol.asyncDispose]())

const text = (headers: ReadonlyMap<number, Buffer>, key: number) => headers.get(key)?.toString('latin1') ?? ''
const hex = (headers: ReadonlyMap<number, Buffer>) =>
  Object.fromEntries([...headers].map(([key, value]) => [key, value.toString('hex')]))

/** The answer to a recorded hello. Undefined: the controller has closed the connection. */
async function answerTo(frame: string): Promise<Message | undefined> {
  const socket = await openSocket({ port: replica.port, key: goldenKey })
  socket.write(Buffer.from(frame, 'hex'))
  const first = await readFirst(socket, 30_000).catch(() => undefined)
  socket.destroy()
  return first?.message
}

type Headers = (readonly [number, Buffer])[]
const grouped = (...more: Headers): Headers => [...groupedHello, ...more]
const without = (headers: Headers, key: number): Headers => headers.filter(([at]) => at !== key)
const connect = (key: RouterKey, headers: Headers, to = replica) =>
  connectRouter({ port: to.port, key, headers })

async function refuses(reason: string, key: RouterKey, headers: Headers, id = key.id): Promise<void> {
  const count = async () =>
    (await metrics.routersRefused.get()).values.find(({ labels }) => labels.reason === reason)?.value ?? 0
  const before = await count()
  const refused = connectRouter({ port: replica.port, key, headers, id })
  await expect(refused).rejects.toThrow('closed before the hello')
  expect(await count()).toBe(before + 1)
}

test('the answer to a router of 1.1 has the same bytes as ever', async () => {
  const socket = await openSocket({ port: replica.port, key: goldenKey })
  const received: Buffer[] = []
  socket.on('data', (chunk: Buffer) => received.push(chunk))
  socket.write(Buffer.from(goldenFrames.hello, 'hex'))
  await expect.poll(() => received.length).toBeGreaterThan(0)
  socket.destroy()
  const frames = Buffer.concat(received).toString('latin1')
  const uuid = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/
  const answer =
    '0306090c02000000ffffffff7600000000000000' +
    '000000002d000000' +
    Buffer.from(`sessions/${'u'.repeat(36)}`).toString('hex') +
    '040000000b00000076312e312e31337c7c7c7c' +
    '080000000800000073657373696f6e73' +
    '0c000000010000000e' +
    '0100000004000000ffffffff' +
    '020000000100000001'
  const serverHello = '0306090c204e0000010000000000000009000000' + '0a0776312e312e3133'
  expect(Buffer.from(frames.replace(uuid, 'u'.repeat(36)), 'latin1').toString('hex')).toMatch(
    new RegExp(`^${answer}(${serverHello}|$)`),
  )
})

test('the recorded hello of a router of 2.0 is answered with a secret and with what such routers require', async () => {
  const answer = await answerTo(goldenFrames.groupedHello)
  if (!answer) throw new Error('refused')
  const { [headerKey.connectionId]: id, [groupedHeader.secret]: secret, ...others } = hex(answer.headers)
  expect(Buffer.from(id ?? '', 'hex').toString()).toMatch(/^sessions\/[0-9a-f-]{36}$/)
  expect(secret).toMatch(/^[0-9a-f]{32}$/)
  expect(others).toEqual({
    1: 'ffffffff',
    2: '01',
    4: Buffer.from('v2.0.3||||').toString('hex'),
    7: Buffer.from('ctrl.default').toString('hex'),
    8: Buffer.from('sessions').toString('hex'),
    9: '01',
    12: '0e',
    1002: '5e',
  })
})

test('a further connection is refused, and does not replace the first one', async () => {
  const key = await network.createRouter('further')
  const first = await connect(key, grouped())
  const secret = first.hello.headers.get(groupedHeader.secret) ?? Buffer.alloc(0)
  const id = encodeText(first.hello.connectionId ?? '')
  const joining = grouped([groupedHeader.secret, secret], [headerKey.connectionId, id])
  await refuses('not-first', key, without(joining, groupedHeader.isFirst))
  expect(await answerTo(goldenFrames.furtherHello)).toBeUndefined()
  expect(first.channel.closed.aborted).toBe(false)
  first.channel.close('done')
})

test.each(['ctrl.default', 'ctrl.high', 'ctrl.low'])(
  'a router that has lost its connections returns by %s, at any replica, with its secret and its id',
  async (type) => {
    const key = await network.createRouter(`returns by ${type}`)
    const first = await connect(key, grouped())
    const { headers, connectionId = '', controllerId } = first.hello
    const secret = headers.get(groupedHeader.secret) ?? Buffer.alloc(0)
    first.channel.close('lost')
    const other = await network.replica(`other ${type.length}${type}`)
    const given = encodeText(`${connectionId}-12`)
    const again = grouped(
      [headerKey.type, encodeText(type)],
      [headerKey.connectionId, given],
      [groupedHeader.secret, secret],
    )
    const second = await connect(key, again, other)
    expect(second.hello.headers.get(groupedHeader.secret)).toEqual(secret)
    expect(second.hello.headers.get(headerKey.connectionId)).toEqual(given)
    expect(text(second.hello.headers, headerKey.type)).toBe(type)
    expect(second.hello.controllerId).toBe(controllerId)
    expect(other.control.channels.get(key.id)?.isReconnection).toBe(true)
    second.channel.close('done')
    await other[Symbol.asyncDispose]()
  },
)

test('a newer process of a router replaces the older one, and too many are contested', async () => {
  const key = await network.createRouter('churn')
  const first = await connect(key, grouped())
  const closed = untilClosed(first)
  await connect(key, grouped())
  await closed
  await connect(key, grouped())
  const last = await connect(key, grouped())
  await refuses('contested', key, grouped())
  expect(last.channel.closed.aborted).toBe(false)
  last.channel.close('done')
})

const listeners = (count: number, address = 'tls:127.0.0.1:6262') => {
  const listener = { address, protocol: 'tls', costTags: [], groups: ['default'], localBinding: '' }
  return Buffer.from(LinkListeners.encode({ listeners: Array(count).fill(listener) }).finish())
}

test('the listeners of a grouped hello have a key of their own, and the former keys are not read', async () => {
  const key = await network.createRouter('listeners')
  const [garbage, encoded] = [Buffer.from('0a7f', 'hex'), listeners(100)]
  const headers = grouped([groupedHeader.secret, garbage], [groupedHeader.listeners, encoded])
  const router = await connect(key, headers)
  expect(replica.control.channels.get(key.id)?.linkListeners).toEqual(encoded)
  router.channel.close('done')
  await connect(key, [...headers, [groupedHeader.capabilities, Buffer.of(4)]])
  expect(replica.control.channels.get(key.id)?.linkListeners).toHaveLength(0)
})

test('a router of 2.1 announces more, and is answered as one of 2.0', async () => {
  const key = await network.createRouter('2.1')
  const mask = Buffer.from('4000000000000076', 'hex')
  const headers = grouped([groupedHeader.capabilities, mask], [groupedHeader.listeners, listeners(1)])
  const router = await connect(key, headers)
  expect(router.hello.headers.get(groupedHeader.capabilities)).toEqual(Buffer.of(0x5e))
  expect(replica.control.channels.get(key.id)?.linkListeners).toEqual(listeners(1))
  router.channel.close('done')
})

test.each([
  ['v1.1.13', 0x0e, 'v1.1.13', undefined],
  ['v1.2.2', 0x0e, 'v1.1.13', undefined],
  ['v1.3.0', 0x1e, 'v2.0.3', encodeBool(true)],
  ['v1.6.20', 0x1e, 'v2.0.3', encodeBool(true)],
  ['v1.7.2', 0x1e, 'v2.0.3', encodeBool(true)],
])('a router of %s is offered the data model if it knows one', async (release, bits, own, isSupported) => {
  const key = await network.createRouter(release)
  const value = encodeVersion({ version: release, revision: '', buildDate: '', os: '', arch: '' })
  const router = await connect(key, [[headerKey.version, value]])
  const { headers } = router.hello
  expect(headers.get(headerKey.capabilities)).toEqual(Buffer.of(bits))
  expect(router.hello.version.version).toBe(own)
  expect(headers.has(groupedHeader.capabilities)).toBe(false)
  const { headers: ofServerHello } = await router.message(edgeType.serverHello)
  expect(ofServerHello.get(modelHeader.isSupported)).toEqual(isSupported)
  router.channel.close('done')
})

test('the type of a connection excuses no router from the checks of its certificate', async () => {
  const [own, other] = [await network.createRouter('own'), await network.createRouter('other')]
  await refuses('wrong-certificate', other, grouped(), own.id)
  await refuses('untrusted', await network.certify(own.id, { issuer: await authority('root') }), grouped())
  await refuses('wrong-certificate', other, without(grouped(), groupedHeader.isFirst), own.id)
})

test.each<[string, string, Headers]>([
  ['the type of a controller', 'not-a-router', grouped([headerKey.type, encodeText('ctrl.mesh')])],
  ['a type that is no text', 'not-a-router', grouped([headerKey.type, Buffer.of(0xff)])],
  ['no type', 'not-a-router', without(grouped(), headerKey.type)],
  ['a type, and no group', 'not-a-router', without(grouped(), groupedHeader.isGrouped)],
  ['a large secret', 'malformed', grouped([groupedHeader.secret, randomBytes(65)])],
  ['an id with control characters', 'malformed', grouped([headerKey.connectionId, Buffer.from('a\n')])],
  ['an id that is too long', 'malformed', grouped([headerKey.connectionId, Buffer.alloc(301, 'a')])],
  ['101 link listeners', 'malformed', grouped([groupedHeader.listeners, listeners(101, 'a')])],
  [
    '8000 link listeners',
    'malformed',
    grouped([groupedHeader.listeners, Buffer.alloc(16_000, '0a00', 'hex')]),
  ],
  [
    '10,000 link listeners',
    'malformed',
    grouped([groupedHeader.listeners, Buffer.alloc(20_000, '0a00', 'hex')]),
  ],
  ['listeners that cannot be decoded', 'malformed', grouped([groupedHeader.listeners, Buffer.of(0x0a)])],
])('a grouped hello with %s is refused', async (what, reason, headers) => {
  await refuses(reason, await network.createRouter(what), headers)
})

test('a mask of any length is read', async () => {
  const key = await network.createRouter('mask')
  const mask = Buffer.concat([randomBytes(HELLO_LIMITS.headersBytes - 1000), encodeBits([1])])
  const router = await connect(key, grouped([groupedHeader.capabilities, mask]))
  expect(replica.control.channels.get(key.id)?.features.isGrouped).toBe(true)
  router.channel.close('done')
})
