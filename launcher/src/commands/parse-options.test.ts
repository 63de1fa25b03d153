import { expect, test } from 'vitest'
import { timeOf } from './parse-options.js'

const now = Date.parse('2026-01-12T09:30:00Z')

test.each([
  ['90s', '2026-01-12T09:28:30.000Z'],
  ['30m', '2026-01-12T09:00:00.000Z'],
  ['2h', '2026-01-12T07:30:00.000Z'],
  ['7d', '2026-01-05T09:30:00.000Z'],
  ['2026-01-01', '2026-01-01T00:00:00.000Z'],
])('%s is a time', (text, time) => {
  expect(timeOf(text, now).toISOString()).toBe(time)
})

test.each(['', 'yesterday', '2', '-2h'])('%j is no time', (text) => {
  expect(() => timeOf(text, now)).toThrow('is no time')
})
