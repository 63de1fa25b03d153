import { expect, test } from 'vitest'
import { DerError, derOf, type Element, encode, sequence, tag } from './der.js'
import { extensionIds } from './extension.js'
import { pathLengthOf } from './restrictions.js'

const limited = (...content: readonly number[]) => {
  const limit: Element = encode(tag.integer, Buffer.from(content))
  return {
    extensions: [{ id: extensionIds.basicConstraints, isCritical: true, value: derOf(sequence(limit)) }],
  }
}

test('a path length is any integer of up to four bytes; a longer one limits nothing', () => {
  expect(pathLengthOf(limited(0))).toBe(0)
  expect(pathLengthOf(limited(1, 0, 0, 0))).toBe(2 ** 24)
  expect(pathLengthOf(limited(1, 0, 0, 0, 0))).toBeUndefined()
  expect(pathLengthOf({ extensions: [] })).toBeUndefined()
})

test('a path length without content is not valid DER', () => {
  expect(() => pathLengthOf(limited())).toThrow(DerError)
})
