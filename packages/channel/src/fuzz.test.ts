import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cut, cuts } from '../testing/arbitraries.js'
import { decodeChunks } from '../testing/frames.js'
import { goldenFrames } from '../testing/golden-frames.js'
import {
  decodeBool,
  decodeBytesMap,
  decodeInt32,
  decodeText,
  decodeTextList,
  decodeTextMap,
  decodeUint32,
  decodeVersion,
  MalformedFrame,
  MalformedHeader,
  type Message,
} from './index.js'

const decoders = [
  decodeBool,
  decodeBytesMap,
  decodeInt32,
  decodeText,
  decodeTextList,
  decodeTextMap,
  decodeUint32,
  decodeVersion,
]

const frames = fc.constantFrom(...Object.values(goldenFrames)).map((hex) => Buffer.from(hex, 'hex'))
const part = fc.double({ min: 0, max: 0.999, noNaN: true })
const mutation = fc.oneof(
  fc.record({ how: fc.constant('set' as const), at: part, to: fc.integer({ min: 0, max: 255 }) }),
  fc.record({ how: fc.constant('start' as const), at: fc.integer({ min: 0, max: 19 }), to: fc.nat(255) }),
  fc.record({ how: fc.constant('remove' as const), at: part, to: fc.nat(20) }),
  fc.record({ how: fc.constant('repeat' as const), at: part, to: fc.nat(40) }),
)

function mutate(stream: Buffer, { how, at, to }: { how: string; at: number; to: number }): Buffer {
  const index = at < 1 ? Math.floor(at * stream.length) : at
  const changed = Buffer.from(stream)
  switch (how) {
    case 'remove':
      return Buffer.concat([changed.subarray(0, index), changed.subarray(index + to)])
    case 'repeat':
      return Buffer.concat([changed.subarray(0, index + to), changed.subarray(index)])
    default:
      changed[index] = to
      return changed
  }
}

const isMalformed = (err: unknown): boolean => err instanceof MalformedFrame || err instanceof MalformedHeader

test('mutated streams decode or are malformed', () => {
  const streams = fc.tuple(
    fc.array(frames, { minLength: 1, maxLength: 5 }),
    fc.array(mutation, { maxLength: 8 }),
  )
  let malformed = 0
  const property = fc.property(streams, cuts, ([sent, mutations], at) => {
    const stream = mutations.reduce(mutate, Buffer.concat(sent))
    let messages: Message[]
    try {
      messages = decodeChunks(cut(stream, at))
    } catch (err) {
      if (!isMalformed(err)) throw err
      malformed++
      return
    }
    const decodedBytes = messages.reduce((sum, { body }) => sum + body.length, 0)
    expect(decodedBytes).toBeLessThanOrEqual(stream.length)
  })
  fc.assert(property, { seed: 7, numRuns: 5000 })
  expect(malformed).toBeGreaterThan(500)
})

test('mutated headers decode or are malformed', () => {
  const values = fc.constantFrom(
    ...Object.values(goldenFrames).flatMap((hex) =>
      decodeChunks([Buffer.from(hex, 'hex')]).flatMap(({ headers }) => [...headers.values()]),
    ),
  )
  const property = fc.property(values, fc.array(mutation, { maxLength: 4 }), (value, mutations) => {
    const bytes = mutations.reduce(mutate, value)
    for (const decode of decoders) {
      try {
        decode(bytes)
      } catch (err) {
        if (!isMalformed(err)) throw err
      }
    }
  })
  fc.assert(property, { seed: 7, numRuns: 5000 })
})
