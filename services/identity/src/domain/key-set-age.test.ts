import { expect, test } from 'vitest'
import { isFetchDue, missesAfter } from './key-set-age.js'

const nowMs = 1_800_000_000_000
const state = { fetchedAtMs: nowMs, failedAtMs: null, failures: 0, misses: 0, nowMs }
const SECOND_MS = 1000

test('fetches for a key that they do not bring are repeated after pauses that double up to eight seconds', () => {
  let misses = 0
  for (const seconds of [0, 1, 2, 4, 8, 8]) {
    const after = (ms: number) => ({ ...state, misses, fetchedAtMs: nowMs - ms })
    if (seconds > 0) expect(isFetchDue(after(seconds * SECOND_MS - 1), true)).toBe(false)
    expect(isFetchDue(after(seconds * SECOND_MS), true)).toBe(true)
    expect(isFetchDue(after(seconds * SECOND_MS), false)).toBe(false)
    misses = missesAfter(after(seconds * SECOND_MS))
  }
})

test('after a quiet minute the pauses are short again', () => {
  expect(missesAfter({ ...state, misses: 5, fetchedAtMs: nowMs - 60 * SECOND_MS })).toBe(1)
})

test('failed fetches are repeated after pauses that double up to a minute, whatever is missing', () => {
  for (const [failures, seconds] of [
    [1, 1],
    [2, 2],
    [7, 60],
    [2000, 60],
  ] as const) {
    const after = (ms: number) => ({ ...state, fetchedAtMs: null, failures, failedAtMs: nowMs - ms })
    expect(isFetchDue(after(seconds * SECOND_MS - 1), true)).toBe(false)
    expect(isFetchDue(after(seconds * SECOND_MS), false)).toBe(true)
  }
})
