import { BinaryWriter } from '@bufbuild/protobuf/wire'
import { expect, test } from 'vitest'
import { decodeAnswer } from './answer-codec.js'
import { Fault, faultToMessage } from './fault.js'
import { Answer } from './gen/overlay/stream/v1/stream.js'

test.each([
  ['the end of a stream', Answer.create()],
  ['an empty response', Answer.create({ tag: 7 })],
  ['a response', Answer.create({ tag: 2 ** 32 - 1, response: Buffer.alloc(100_000, 'a') })],
  ['a fault', Answer.create({ tag: 7, fault: faultToMessage(new Fault('NOT_FOUND', 'x')) })],
])('%s is read as the generated code reads it', (_, answer) => {
  const bytes = Buffer.from(Answer.encode(answer).finish())
  expect(decodeAnswer(bytes)).toEqual(Answer.decode(bytes))
})

test('a member of a later release is ignored', () => {
  const later = Answer.encode(
    Answer.create({ tag: 7 }),
    new BinaryWriter().uint32(98).string('later'),
  ).finish()
  expect(decodeAnswer(Buffer.from(later))).toEqual(Answer.create({ tag: 7 }))
})

test.each(['12ff', '0880', '1aff01'])('malformed bytes are refused: %s', (hex) => {
  expect(() => decodeAnswer(Buffer.from(hex, 'hex'))).toThrow()
})

test('the response is a part of the message', () => {
  const bytes = Buffer.from(Answer.encode(Answer.create({ tag: 1, response: Buffer.from('abc') })).finish())
  expect(decodeAnswer(bytes).response.buffer).toBe(bytes.buffer)
})
