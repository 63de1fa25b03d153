import { expect, test } from 'vitest'
import { isDisabled } from './disabled.js'

const now = new Date('2026-01-01T12:00:00Z')
const before = new Date('2026-01-01T11:00:00Z')
const after = new Date('2026-01-01T13:00:00Z')

test.each([
  ['an identity that was never disabled', null, null, false],
  ['without an end it lasts', before, null, true],
  ['it lasts until its end', before, after, true],
  ['it lapses at its end', before, now, false],
] as const)('%s', (_rule, disabledAt, disabledUntil, expected) => {
  expect(isDisabled({ disabledAt, disabledUntil }, now)).toBe(expected)
})
