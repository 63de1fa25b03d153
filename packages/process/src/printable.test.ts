import { expect, test } from 'vitest'
import { printable } from './printable.js'

test.each([
  ['alice@example.org', 'alice@example.org'],
  ['Zoë 😀 名', 'Zoë 😀 名'],
  ['a\nb\u001b[2J\u0007', 'a\uFFFDb\uFFFD[2J\uFFFD'],
  ['c1 \u009b, direction \u202e, line \u2028', 'c1 \uFFFD, direction \uFFFD, line \uFFFD'],
  ['half a character \ud83d', 'half a character \uFFFD'],
])('%j is logged as %j', (text, logged) => {
  expect(printable(text)).toBe(logged)
})

test('a long text is cut, and its mark shows it', () => {
  expect(printable('x'.repeat(200), 128)).toBe(`${'x'.repeat(128)}…`)
})
