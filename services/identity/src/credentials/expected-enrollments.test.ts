import { expect, test } from 'vitest'
import { expectedEnrollments } from './expected-enrollments.js'

test('an enrollment is expected for a while, and the last ten thousand of them', () => {
  let nowMs = 0
  const expected = expectedEnrollments(() => nowMs)
  for (let i = 0; i <= 10_000; i++) expected.add(String(i))
  nowMs = 299_999
  expect([expected.has('0'), expected.has('1'), expected.has('10000'), expected.has('other')]).toEqual([
    false,
    true,
    true,
    false,
  ])
  nowMs = 300_000
  expect(expected.has('10000')).toBe(false)
})
