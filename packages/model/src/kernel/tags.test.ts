import { expect, test } from 'vitest'
import { storedBytes } from './tags.js'

test.each([
  ['text with characters that are escaped', '"\\u0001é"', '"\u0001é"'],
  ['lists', '[1, 2, [true, null]]', [1, 2, [true, null]]],
  ['objects', '{"a": "b", "c": {}}', { a: 'b', c: {} }],
  ['large numbers', `1${'0'.repeat(300)}`, 1e300],
  ['small numbers', `0.${'0'.repeat(299)}15`, 1.5e-300],
])('%s take at most what is reserved for them', (_what, text, value) => {
  const bytes = storedBytes(value)
  expect(bytes).toBeGreaterThanOrEqual(Buffer.byteLength(text))
  expect(bytes).toBeLessThanOrEqual(Buffer.byteLength(text) + 12)
})
