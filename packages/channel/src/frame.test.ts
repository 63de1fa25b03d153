import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cut, cuts, message } from '../testing/arbitraries.js'
import { decodeChunks } from '../testing/frames.js'
import { goldenFrames } from '../testing/golden-frames.js'
import { encodeFrame, type FrameDecoder, frameDecoder, MalformedFrame, type Message } from './index.js'
import { HELLO_LIMITS, MESSAGE_LIMITS } from './limits.js'

const options = { seed: 42, numRuns: 300 }

test('messages decode to the same, wherever their bytes are cut', () => {
  const messages = fc.array(message, { maxLength: 6 })
  const property = fc.property(messages, cuts, (sent, at) => {
    const stream = Buffer.concat(
      sent.map(({ type, sequence, headers, body }) => encodeFrame(type, sequence, headers, body)),
    )
    expect(decodeChunks(cut(stream, at))).toEqual(sent)
  })
  fc.assert(property, options)
})

test('a stream of single bytes decodes', () => {
  const stream = Buffer.concat(Object.values(goldenFrames).map((hex) => Buffer.from(hex, 'hex')))
  const single = Array.from(stream, (byte) => Buffer.from([byte]))
  expect(decodeChunks(single)).toHaveLength(Object.keys(goldenFrames).length)
})

const frame = (headers: number, body: number): Buffer => {
  const start = encodeFrame(1, 1, [], Buffer.alloc(0))
  start.writeUInt32LE(headers, 12)
  start.writeUInt32LE(body, 16)
  return start
}
const header = (length: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt32LE(length, 4)
  return bytes
}
const manyHeaders = encodeFrame(
  1,
  1,
  Array.from({ length: 300 }, (_, key) => [key, Buffer.alloc(0)] as const),
  Buffer.alloc(0),
)

test.each([
  ['bad magic', Buffer.from('GET / HTTP/1.1\r\n\r\n....'), MESSAGE_LIMITS],
  ['headers beyond the limit', frame(MESSAGE_LIMITS.headersBytes + 1, 0), MESSAGE_LIMITS],
  ['a body beyond the limit', frame(0, MESSAGE_LIMITS.bodyBytes + 1), MESSAGE_LIMITS],
  ['a length with the highest bit', frame(0, 0xffffffff), MESSAGE_LIMITS],
  ['headers beyond the limit of a hello', frame(16_385, 0), HELLO_LIMITS],
  ['a body beyond the limit of a hello', frame(0, 4193), HELLO_LIMITS],
  ['a header that ends in its start', Buffer.concat([frame(7, 0), Buffer.alloc(7)]), MESSAGE_LIMITS],
  ['a header that ends in its value', Buffer.concat([frame(8, 0), header(1)]), MESSAGE_LIMITS],
  ['a header with a huge length', Buffer.concat([frame(8, 0), header(0xffffffff)]), MESSAGE_LIMITS],
  ['too many headers', manyHeaders, MESSAGE_LIMITS],
  [
    'a body that is too large to skip',
    frame(0, 1001),
    { ...HELLO_LIMITS, bodyBytes: 10, skippedBytes: 1000 },
  ],
])('%s is malformed', (_, bytes, limits) => {
  const decoder = frameDecoder()
  decoder.push(bytes)
  expect(() => decoder.next(limits)).toThrow(MalformedFrame)
})

test('a frame is refused by its first 20 bytes', () => {
  const decoder = frameDecoder()
  decoder.push(frame(0, MESSAGE_LIMITS.bodyBytes + 1).subarray(0, 19))
  expect(decoder.next(MESSAGE_LIMITS)).toBeUndefined()
  decoder.push(Buffer.from([0]))
  expect(() => decoder.next(MESSAGE_LIMITS)).toThrow(MalformedFrame)
})

const SKIPPING = { headersBytes: 100, bodyBytes: 10, skippedBytes: 1000 }

test('a body beyond the limit is skipped, wherever its bytes are cut', () => {
  const entry = [9, Buffer.from('x')] as const
  const bodies = [10, 11, 1000, 0, 500].map((size) => Buffer.alloc(size, 7))
  const stream = Buffer.concat(bodies.map((body, at) => encodeFrame(1, at, [entry], body)))
  const property = fc.property(cuts, (at) => {
    const decoder = frameDecoder()
    const decoded = cut(stream, at).flatMap((chunk) => {
      decoder.push(chunk)
      return [...messagesIn(decoder)]
    })
    expect(decoded).toEqual(
      bodies.map((body, sequence) => ({
        ...{ type: 1, sequence, headers: new Map([entry]) },
        ...(body.length > 10 ? { body: Buffer.alloc(0), skippedBytes: body.length } : { body }),
      })),
    )
  })
  fc.assert(property, options)
})

function* messagesIn(decoder: FrameDecoder): Generator<Message> {
  for (let next = decoder.next(SKIPPING); next; next = decoder.next(SKIPPING)) yield next
}

test('a large body in tiny chunks is not copied for each chunk', () => {
  const body = Buffer.alloc(MESSAGE_LIMITS.bodyBytes, 7)
  const stream = encodeFrame(1, 1, [], body)
  const size = 10
  const chunks = Array.from({ length: Math.ceil(stream.length / size) }, (_, index) =>
    stream.subarray(index * size, (index + 1) * size),
  )
  expect(decodeChunks(chunks)[0]?.body.equals(body)).toBe(true) // quadratic copies exceed the test's time-out
})
