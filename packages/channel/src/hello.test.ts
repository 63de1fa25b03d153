import { expect, test, vi } from 'vitest'
import { goldenFrames } from '../testing/golden-frames.js'
import { received } from '../testing/received.js'
import { sendHello } from '../testing/send-hello.js'
import { closed, tlsPair } from '../testing/tls-pair.js'
import {
  acceptHello,
  contentType,
  decodeText,
  encodeBool,
  encodeFrame,
  encodeInt32,
  encodeText,
  HELLO_SEQUENCE,
  HelloFailed,
  headerKey,
  MalformedFrame,
  MalformedHeader,
} from './index.js'

const version = [headerKey.version, encodeText('v1.1.13|f00|today|linux|amd64')] as const
const answer = new Map([version, [headerKey.id, encodeText('ctrl-1')]])
const TIMEOUT_MS = 30_000
const nothing = Buffer.alloc(0)

test('both sides learn of each other, and messages that follow at once arrive', async () => {
  await using pair = await tlsPair()
  const messages = received()
  const [toRouter, toController] = await Promise.all([
    acceptHello(pair.server, TIMEOUT_MS).then((hello) => {
      expect(hello.routerId).toBe('router-1')
      expect(hello.version.version).toBe('v1.1.13')
      const channel = hello.accept(answer, { onMessage: () => {} })
      channel.send({ type: 1000, body: encodeText('first') })
      return channel
    }),
    sendHello(pair.client, { routerId: 'router-1', headers: new Map([version]) }, TIMEOUT_MS).then(
      (hello) => {
        expect(hello.controllerId).toBe('ctrl-1')
        expect(hello.connectionId).toBeUndefined()
        expect(hello.version.arch).toBe('amd64')
        return hello.open({ onMessage: messages.onMessage })
      },
    ),
  ])
  expect(decodeText((await messages.next()).body)).toBe('first')
  expect([toRouter.closed.aborted, toController.closed.aborted]).toEqual([false, false])
})

test('the hello of a real router is accepted, and the bytes after it are messages', async () => {
  await using pair = await tlsPair()
  const frames = [goldenFrames.hello, goldenFrames.routerLinksEmpty, goldenFrames.clientHello]
  pair.client.write(Buffer.from(frames.join(''), 'hex'))
  const hello = await acceptHello(pair.server, TIMEOUT_MS)
  expect(hello.routerId).toBe('golden.r1')
  const messages = received()
  hello.accept(answer, { onMessage: messages.onMessage })
  expect([(await messages.next()).type, (await messages.next()).type]).toEqual([1035, 20001])
})

test('a hello may have the listeners of a large router', async () => {
  await using pair = await tlsPair()
  pair.client.write(helloFrame(new Map([version, [1000, Buffer.alloc(16_000)]])))
  const { headers } = await acceptHello(pair.server, TIMEOUT_MS)
  expect(headers.get(1000)).toHaveLength(16_000)
})

test('messages that arrive during the checks of the hello are not lost', async () => {
  await using pair = await tlsPair()
  pair.client.write(Buffer.from(goldenFrames.hello, 'hex'))
  const hello = await acceptHello(pair.server, TIMEOUT_MS)
  pair.client.write(Buffer.from(goldenFrames.clientHello, 'hex'))
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
  const messages = received()
  hello.accept(answer, { onMessage: messages.onMessage })
  expect((await messages.next()).type).toBe(20001)
})

test('the time limit of the hello does not concern the channel', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    await using pair = await tlsPair()
    pair.client.write(Buffer.from(goldenFrames.hello, 'hex'))
    const messages = received()
    const hello = await acceptHello(pair.server, 1000)
    hello.accept(answer, { onMessage: messages.onMessage })
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
    vi.advanceTimersByTime(1000)
    pair.client.write(Buffer.from(goldenFrames.clientHello, 'hex'))
    expect((await messages.next()).type).toBe(20001)
  } finally {
    vi.useRealTimers()
  }
})

const helloFrame = (
  headers: Map<number, Buffer>,
  body: Buffer = encodeText('r'),
  type: number = contentType.hello,
) => encodeFrame(type, HELLO_SEQUENCE, headers, body)

test.each([
  ['HTTP', Buffer.from('GET /version HTTP/1.1\r\n\r\n'), MalformedFrame],
  ['large headers', helloFrame(new Map([version, [99, Buffer.alloc(16_385)]])), MalformedFrame],
  ['a large body', helloFrame(new Map([version]), Buffer.alloc(4193, 65)), MalformedFrame],
  ['another type', helloFrame(new Map([version]), nothing, contentType.ping), HelloFailed],
  ['no router id', helloFrame(new Map([version]), nothing), HelloFailed],
  ['a router id that is not UTF-8', helloFrame(new Map([version]), Buffer.from([0xff])), MalformedHeader],
  ['a version of four parts', helloFrame(new Map([[4, encodeText('a|b|c|d')]])), MalformedHeader],
])('a first message with %s fails and closes the connection', async (_, bytes, error) => {
  await using pair = await tlsPair()
  pair.client.resume().write(bytes)
  await expect(acceptHello(pair.server, TIMEOUT_MS)).rejects.toThrow(error)
  await closed(pair.client)
})

test('the version of a router that sends none is unknown', async () => {
  await using pair = await tlsPair()
  pair.client.write(helloFrame(new Map()))
  const { version: unknown } = await acceptHello(pair.server, TIMEOUT_MS)
  expect(unknown).toEqual({ version: '', revision: '', buildDate: '', os: '', arch: '' })
})

test('a peer that sends no hello in time is closed', async () => {
  await using pair = await tlsPair()
  pair.client.resume().write(Buffer.from(goldenFrames.hello, 'hex').subarray(0, 30))
  await expect(acceptHello(pair.server, 10)).rejects.toThrow('no hello within 10 ms')
  await closed(pair.client)
})

test('a peer that closes before its hello fails it', async () => {
  await using pair = await tlsPair()
  pair.client.destroy()
  await expect(acceptHello(pair.server, TIMEOUT_MS)).rejects.toThrow(HelloFailed)
})

test('a channel to a peer that went during the checks is closed', async () => {
  await using pair = await tlsPair()
  pair.client.write(Buffer.from(goldenFrames.hello, 'hex'))
  const hello = await acceptHello(pair.server, TIMEOUT_MS)
  pair.server.destroy()
  await closed(pair.server)
  expect(hello.accept(answer, { onMessage: () => {} }).closed.aborted).toBe(true)
})

test.each([
  ['a refusal', new Map([version, [1, encodeInt32(-1)], [2, encodeBool(false)]]), 'refused: busy'],
  [
    'an answer without version',
    new Map([
      [1, encodeInt32(-1)],
      [2, encodeBool(true)],
    ]),
    'without version',
  ],
  ['an answer to something else', new Map([version, [1, encodeInt32(5)], [2, encodeBool(true)]]), 'type 2'],
])('%s fails the hello of a router', async (_, headers, message) => {
  await using pair = await tlsPair()
  pair.server.write(encodeFrame(contentType.result, HELLO_SEQUENCE, headers, encodeText('busy')))
  const hello = sendHello(pair.client, { routerId: 'r', headers: new Map([version]) }, TIMEOUT_MS)
  await expect(hello).rejects.toThrow(message)
  await closed(pair.client)
})
