import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type ChannelPair, channelPair, closing } from '../testing/channel-pair.js'
import { decodeChunks } from '../testing/frames.js'
import { received } from '../testing/received.js'
import { tlsPair } from '../testing/tls-pair.js'
import { startHeartbeats } from './heartbeats.js'
import { contentType, encodeFrame, headerKey, openChannel } from './index.js'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const INTERVAL_MS = 10_000
const TIMEOUT_MS = 1_000_000
const nothing = Buffer.alloc(0)

/** Passes time in steps. Both ends receive after each step what the other one sent. */
async function pass({ channel, peer }: ChannelPair, ms: number, stepMs: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    vi.advanceTimersByTime(stepMs)
    for (const from of [channel, peer, channel, peer])
      await from.request({ type: contentType.ping }, TIMEOUT_MS)
  }
}

test('each side answers the heartbeats of the other and measures the round trip', async () => {
  await using pair = await channelPair()
  expect(pair.channel.latencyMs()).toBeUndefined()
  const stepMs = 500
  await pass(pair, 2 * INTERVAL_MS, stepMs)
  for (const latency of [pair.channel.latencyMs(), pair.peer.latencyMs()]) {
    expect(latency).toBeGreaterThanOrEqual(0)
    expect(latency).toBeLessThanOrEqual(stepMs)
  }
})

test('sides that only exchange heartbeats stay connected', async () => {
  await using pair = await channelPair()
  for (let interval = 0; interval < 10; interval++) {
    const answers = [nextChunk(pair.socket), nextChunk(pair.peerSocket)]
    vi.advanceTimersByTime(INTERVAL_MS)
    await Promise.all(answers)
  }
  expect([pair.channel.closed.aborted, pair.peer.closed.aborted]).toEqual([false, false])
})

test('an answer is the same 8 bytes, and a heartbeat that is due rides on it', async () => {
  await using pair = await tlsPair()
  const channel = openChannel(pair.server, { onMessage: () => {} })
  const stamp = Buffer.from('1f0d6bf3e96fea18', 'hex') // beyond 2^53
  pair.client.write(encodeFrame(contentType.heartbeat, 1, new Map([[headerKey.heartbeat, stamp]]), nothing))
  const [answer] = decodeChunks([await nextChunk(pair.client)])
  expect(answer?.type).toBe(contentType.heartbeat)
  expect(answer?.headers.get(headerKey.heartbeatResponse)).toEqual(stamp)
  expect(answer?.headers.get(headerKey.heartbeat)).toHaveLength(8)
  channel.close('end of the test')
})

test('heartbeats ride on other messages', async () => {
  await using pair = await tlsPair()
  const channel = openChannel(pair.server, {
    onMessage: (request) => channel.reply(request, { type: 1001 }),
  })
  const headers = new Map([[headerKey.heartbeat, Buffer.alloc(8, 7)]])
  pair.client.write(encodeFrame(1000, 1, headers, nothing))
  const messages = decodeChunks([await nextChunk(pair.client)])
  expect(messages.map(({ type }) => type)).toEqual([1001])
  expect(messages[0]?.headers.get(headerKey.heartbeatResponse)).toEqual(Buffer.alloc(8, 7))
  channel.close('end of the test')
})

test('a peer that is silent during three intervals loses its channel', async () => {
  await using pair = await tlsPair()
  pair.client.resume()
  const channel = openChannel(pair.server, { onMessage: () => {} })
  vi.advanceTimersByTime(3 * INTERVAL_MS - 1)
  expect(channel.closed.aborted).toBe(false)
  vi.advanceTimersByTime(2 * INTERVAL_MS)
  expect((await closing(channel)).message).toBe('no answer to heartbeats')
})

test('a peer that sends but does not read loses its channel', async () => {
  await using pair = await tlsPair()
  const messages = received()
  const channel = openChannel(pair.server, { onMessage: messages.onMessage })
  pair.client.pause()
  for (let count = 0; count < 16; count++) channel.send({ type: 1000, body: Buffer.alloc(1024 * 1024) })
  for (let interval = 0; interval < 6 && !channel.closed.aborted; interval++) {
    pair.client.write(encodeFrame(1000, interval, [], nothing))
    await messages.next()
    vi.advanceTimersByTime(INTERVAL_MS)
  }
  expect((await closing(channel)).message).toBe('the peer does not read')
})

test('a peer whose messages wait for handlers keeps its channel', async () => {
  const messages = received()
  await using pair = await channelPair({
    onMessage(message) {
      messages.onMessage(message)
      return new Promise(() => {})
    },
    maxPending: 1,
    maxWaiting: 1,
  })
  for (let count = 0; count < 3; count++) pair.peer.send({ type: 1000 }) // in one record
  await messages.next()
  for (let interval = 0; interval < 6; interval++) {
    const beat = nextChunk(pair.peerSocket)
    vi.advanceTimersByTime(INTERVAL_MS)
    await beat
  }
  expect(pair.channel.closed.aborted).toBe(false)
})

test('the heartbeats of many channels spread over the interval', () => {
  let now = 0
  const times = new Set<number>()
  const all = Array.from({ length: 100 }, () => startHeartbeats(INTERVAL_MS, () => times.add(now)))
  for (; now < INTERVAL_MS; now += 100) vi.advanceTimersByTime(100)
  expect(times.size).toBeGreaterThan(30)
  for (const heartbeats of all) heartbeats.stop()
})

const nextChunk = (socket: NodeJS.ReadableStream): Promise<Buffer> =>
  new Promise((resolve) => socket.once('data', resolve))
