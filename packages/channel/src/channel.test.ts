import { expect, test } from 'vitest'
import { channelPair, closing } from '../testing/channel-pair.js'
import { received } from '../testing/received.js'
import {
  ChannelClosed,
  contentType,
  decodeInt32,
  decodeText,
  encodeFrame,
  encodeText,
  frameDecoder,
  headerKey,
  MalformedFrame,
  MalformedHeader,
  MESSAGE_LIMITS,
  type Message,
  ReplyTimeout,
} from './index.js'

const TIMEOUT_MS = 30_000
const nothing = Buffer.alloc(0)
const echo = 1000
const largeLimits = { ...MESSAGE_LIMITS, bodyBytes: 8_000_000 }

test('messages arrive in order, numbered from 1', async () => {
  await using pair = await channelPair()
  for (const text of ['a', 'b', 'c']) pair.channel.send({ type: 1000, body: encodeText(text) })
  const messages = [await pair.received.next(), await pair.received.next(), await pair.received.next()]
  expect(messages.map(({ sequence, body }) => [sequence, decodeText(body)])).toEqual([
    [1, 'a'],
    [2, 'b'],
    [3, 'c'],
  ])
})

test('a body beyond the limit arrives without its bytes, and is no reply', async () => {
  const limits = { ...MESSAGE_LIMITS, bodyBytes: 10, skippedBytes: 1000 }
  const { next, onMessage } = received()
  await using pair = await channelPair(
    { limits, onMessage },
    { onMessage: (message) => pair.peer.reply(message, { type: 1001, body: Buffer.alloc(500) }) },
  )
  const request = pair.channel.request({ type: 1000 }, TIMEOUT_MS)
  expect(await next()).toMatchObject({ type: 1001, body: nothing, skippedBytes: 500 })
  pair.peer.send({ type: 1002, body: encodeText('small') })
  expect(await next()).toMatchObject({ type: 1002, body: encodeText('small') })
  pair.channel.close('enough')
  await expect(request).rejects.toThrow(ChannelClosed)
})

test('handlers of messages that came with the hello may use the channel', async () => {
  const decoder = frameDecoder()
  decoder.push(encodeFrame(1000, 1, [], nothing))
  await using pair = await channelPair({ decoder, onMessage: () => pair.channel.close('handled') })
  expect((await closing(pair.channel)).message).toBe('handled')
})

test('a request gets its own reply, with the reflected headers', async () => {
  const requests: Message[] = []
  const others: Message[] = []
  await using pair = await channelPair(
    {
      onMessage(message) {
        others.push(message)
      },
    },
    {
      onMessage(message) {
        requests.push(message)
        if (requests.length < 3) return
        for (const request of requests.reverse()) pair.peer.reply(request, { type: 1001, body: request.body })
      },
    },
  )
  const headers = new Map([
    [127, encodeText('not reflected')],
    [128, encodeText('reflected')],
    [255, encodeText('reflected')],
    [256, encodeText('not reflected')],
  ])
  const replies = await Promise.all(
    ['a', 'b', 'c'].map((text) =>
      pair.channel.request({ type: 1000, headers, body: encodeText(text) }, TIMEOUT_MS),
    ),
  )
  expect(replies.map(({ body }) => decodeText(body))).toEqual(['a', 'b', 'c'])
  expect([...(replies[0]?.headers.keys() ?? [])].filter((key) => key > 6)).toEqual([128, 255])
  expect(others).toEqual([])
})

test('a request without an answer times out, and its late reply is a message', async () => {
  await using pair = await channelPair()
  await expect(pair.peer.request({ type: 1000 }, 10)).rejects.toThrow(ReplyTimeout)
  pair.channel.reply({ type: 1000, sequence: 1, headers: new Map(), body: nothing }, { type: 1001 })
  const late = await pair.received.next()
  expect([late.type, decodeInt32(late.headers.get(headerKey.replyFor) ?? nothing)]).toEqual([1001, 1])
})

test('a closed channel fails its requests and ignores messages', async () => {
  await using pair = await channelPair()
  const pending = pair.channel.request({ type: 1000 }, TIMEOUT_MS)
  pair.channel.close('enough')
  await expect(pending).rejects.toThrow(new ChannelClosed('enough'))
  await expect(pair.channel.request({ type: 1000 }, TIMEOUT_MS)).rejects.toThrow('enough')
  await expect(pair.channel.drained()).rejects.toThrow('enough')
  pair.channel.send({ type: 1000 })
  expect((await closing(pair.peer)).message).toBe('closed by the peer')
})

test('pings and latency probes are answered, heartbeats and reconnect pings are not handled', async () => {
  const handled: number[] = []
  await using pair = await channelPair({
    onMessage({ type }) {
      handled.push(type)
    },
  })
  pair.peer.send({ type: contentType.reconnectPing })
  pair.peer.send({ type: contentType.heartbeat })
  pair.peer.send({ type: 4711 })
  const probe = { type: contentType.latency, headers: new Map([[128, Buffer.alloc(8, 3)]]) }
  const latency = await pair.peer.request(probe, TIMEOUT_MS)
  expect([latency.type, latency.headers.get(128)]).toEqual([contentType.latencyResponse, Buffer.alloc(8, 3)])
  const pong = await pair.peer.request({ type: contentType.ping }, TIMEOUT_MS)
  expect([pong.type, pong.headers.get(headerKey.resultSuccess)]).toEqual([
    contentType.result,
    Buffer.from([1]),
  ])
  expect(handled).toEqual([4711])
})

test('messages that the channel answers itself pause reading, if their receiver does', async () => {
  let resume = (): void => {}
  const paused = new Promise<void>((resolve) => {
    resume = resolve
  })
  const seen: (number | string)[] = []
  const onOwn = ({ type }: Message): Promise<void> => {
    seen.push(type)
    return paused
  }
  await using other = await channelPair()
  await using pair = await channelPair({ onOwn, maxPending: 1, maxWaiting: 1 })
  const { ping, heartbeat, latency } = contentType
  pair.peer.send({ type: heartbeat })
  await pair.peer.request({ type: ping }, TIMEOUT_MS)
  const answer = pair.peer.request({ type: latency }, TIMEOUT_MS).then(() => seen.push('answered'))
  for (let i = 0; i < 3; i++) await other.peer.request({ type: ping }, TIMEOUT_MS)
  seen.push('resumed')
  resume()
  await answer
  expect(seen).toEqual([heartbeat, 'resumed', ping, latency, 'answered'])
})

test('a message goes over many channels', async () => {
  await using first = await channelPair()
  await using second = await channelPair()
  second.channel.send({ type: 999 })
  const body = Buffer.alloc(100_000, 5)
  const message = { type: 1000, headers: new Map([[9, encodeText('x')]]), body }
  for (const { channel } of [first, second]) channel.send(message)
  await second.received.next()
  for (const [sequence, { received }] of [first, second].entries()) {
    const message = await received.next()
    expect([message.type, message.sequence, message.body.equals(body)]).toEqual([1000, sequence + 1, true])
  }
})

test.each([
  ['a malformed frame', Buffer.from('no frame, but at least 20 bytes'), MalformedFrame],
  ['a malformed list of headers', encodeFrame(1, 1, [], nothing).fill(9, 12, 13), MalformedFrame],
  [
    'a malformed reply',
    encodeFrame(1, 1, new Map([[headerKey.replyFor, Buffer.alloc(3)]]), nothing),
    MalformedHeader,
  ],
])('%s closes the channel with its reason, and no other', async (_, bytes, cause) => {
  await using pair = await channelPair()
  await using other = await channelPair()
  pair.peerSocket.write(Buffer.concat([bytes, Buffer.alloc(20)]))
  const reason = await closing(pair.channel)
  expect(reason).toBeInstanceOf(ChannelClosed)
  expect(reason.cause).toBeInstanceOf(cause)
  expect((await other.peer.request({ type: contentType.ping }, TIMEOUT_MS)).type).toBe(contentType.result)
})

test.each([
  [
    'throws',
    () => {
      throw new MalformedHeader('bad')
    },
  ],
  ['rejects', () => Promise.reject(new MalformedHeader('bad'))],
])('a handler that %s closes the channel', async (_, onMessage) => {
  await using pair = await channelPair({ onMessage })
  pair.peer.send({ type: 1000 })
  const reason = await closing(pair.channel)
  expect([reason.message, reason.cause]).toEqual(['bad', new MalformedHeader('bad')])
})

/** Handlers that wait until they are released. */
function gate() {
  const release: (() => void)[] = []
  const started: number[] = []
  const arrivals: (() => void)[] = []
  return {
    started,
    release,
    onMessage: ({ sequence }: Message) => {
      started.push(sequence)
      for (const arrival of arrivals.splice(0)) arrival()
      return new Promise<void>((resolve) => release.push(resolve))
    },
    async reaches(count: number) {
      while (started.length < count) await new Promise<void>((resolve) => arrivals.push(resolve))
    },
  }
}

test('handlers start in order, and only so many at a time', async () => {
  const handlers = gate()
  await using pair = await channelPair({ onMessage: handlers.onMessage, maxPending: 2 })
  for (let count = 0; count < 5; count++) pair.peer.send({ type: 1000 })
  await pair.peer.request({ type: contentType.ping }, TIMEOUT_MS) // all messages before were read
  expect(handlers.started).toEqual([1, 2])
  handlers.release[1]?.()
  await handlers.reaches(3)
  handlers.release[0]?.()
  handlers.release[2]?.()
  await handlers.reaches(5)
  expect(handlers.started).toEqual([1, 2, 3, 4, 5])
})

test('replies arrive while all handlers are busy', async () => {
  const replies: Message[] = []
  await using pair = await channelPair(
    {
      maxPending: 1,
      async onMessage() {
        replies.push(await pair.channel.request({ type: echo }, TIMEOUT_MS))
      },
    },
    {
      onMessage(message) {
        pair.peer.reply(message, { type: echo })
        if (replies.length === 2) pair.peer.close('done')
      },
    },
  )
  for (let count = 0; count < 3; count++) pair.peer.send({ type: 1000 })
  await closing(pair.peer)
  expect(replies).toHaveLength(2)
})

test('a channel with too many waiting messages reads no more until there is room', async () => {
  const handlers = gate()
  await using pair = await channelPair({ onMessage: handlers.onMessage, maxPending: 1, maxWaiting: 2 })
  const count = 40
  const body = Buffer.alloc(512 * 1024)
  for (let sent = 0; sent < count; sent++) pair.peer.send({ type: 1000, body })
  await handlers.reaches(1)
  await turns(100)
  expect(pair.peer.queuedBytes()).toBeGreaterThan(0)
  for (let released = 0; released < count; released++) {
    await handlers.reaches(released + 1)
    await turns(10)
    handlers.release[released]?.()
  }
  await pair.peer.drained()
  expect(handlers.started).toHaveLength(count)
})

test('a flood on one channel leaves turns to another', async () => {
  let handled = 0
  await using flooded = await channelPair({
    onMessage() {
      handled++
    },
  })
  await using other = await channelPair()
  const count = 20_000
  for (let sent = 0; sent < count; sent++) flooded.peer.send({ type: 1000 })
  await other.peer.request({ type: contentType.ping }, TIMEOUT_MS)
  expect(handled).toBeLessThan(count)
  await flooded.peer.request({ type: contentType.ping }, TIMEOUT_MS)
  expect(handled).toBe(count)
})

test('senders wait until the peer has taken most of their bytes', async () => {
  await using pair = await channelPair()
  let drained = false
  await pair.channel.request({ type: contentType.ping }, TIMEOUT_MS)
  pair.peerSocket.pause()
  for (let count = 0; count < 16; count++) pair.channel.send({ type: 1000, body: Buffer.alloc(1024 * 1024) })
  const waiting = pair.channel.drained().then(() => {
    drained = true
  })
  await turns(100)
  expect(drained).toBe(false)
  pair.peerSocket.resume()
  await waiting
  expect(pair.channel.queuedBytes()).toBeLessThan(1024 * 1024)
})

test('a message in parts arrives whole, and messages that are sent meanwhile after it', async () => {
  await using pair = await channelPair({ maxQueuedBytes: 2 * 1024 * 1024 }, { limits: largeLimits })
  const parts = [Buffer.alloc(3_000_000, 1), nothing, Buffer.alloc(70_000, 2)]
  const headers = new Map([[77, encodeText('h')]])
  const sending = pair.channel.sendLarge(() => ({ type: 1000, headers, parts }))
  const second = pair.channel.sendLarge(() => ({ type: 1001, parts: [encodeText('second')] }))
  pair.channel.send({ type: 1002, body: encodeText('small') })
  await Promise.all([sending, second, pair.channel.drained()])
  const messages = [await pair.received.next(), await pair.received.next(), await pair.received.next()]
  expect(messages.map(({ type }) => type).sort()).toEqual([1000, 1001, 1002])
  expect(messages[0]?.body.equals(Buffer.concat(parts))).toBe(true)
  expect(messages[0]?.headers.get(77)).toEqual(encodeText('h'))
})

test('a request in parts gets its reply', async () => {
  const onMessage = (message: Message): void => pair.peer.reply(message, { type: 1001, body: message.body })
  await using pair = await channelPair({}, { onMessage })
  const parts = [encodeText('a'), encodeText('b')]
  const reply = await pair.channel.requestLarge(() => ({ type: echo, parts }), TIMEOUT_MS)
  expect(decodeText(reply.body)).toBe('ab')
})

test('the end of the channel ends a message in parts, its request, and those that wait', async () => {
  await using pair = await channelPair()
  pair.peerSocket.pause()
  const parts = [Buffer.alloc(20_000_000)]
  const sending = [
    pair.channel.requestLarge(() => ({ type: 1000, parts }), TIMEOUT_MS),
    pair.channel.sendLarge(() => ({ type: 1000, parts })),
    pair.channel.drained(),
  ]
  pair.channel.send({ type: 1001 })
  pair.channel.close('enough')
  for (const { status } of await Promise.allSettled(sending)) expect(status).toBe('rejected')
})

test('a peer that takes nothing loses its channel when too many bytes are queued', async () => {
  await using pair = await channelPair({ maxQueuedBytes: 8 * 1024 * 1024 })
  await pair.channel.request({ type: contentType.ping }, TIMEOUT_MS)
  pair.peerSocket.pause()
  for (let count = 0; count < 32; count++) pair.channel.send({ type: 1000, body: Buffer.alloc(1024 * 1024) })
  expect((await closing(pair.channel)).message).toBe('the peer does not read')
})

/** Lets both ends do what they can do now. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}
