import { expect, test } from 'vitest'
import { openLateness } from './sources.js'

/** The lateness of a follower at `position` after looks at `[ms, head]`, at the time of the last one. */
function lateAfter(looks: readonly (readonly [number, number])[], position: number): number {
  const lateness = openLateness()
  for (const [atMs, head] of looks) lateness.note(new Map([['policy', head]]), atMs)
  return lateness.of('policy', position, looks.at(-1)?.[0] ?? 0)
}

test.each([
  [
    'has all changes',
    [
      [0, 5],
      [1000, 5],
    ],
    5,
    0,
  ],
  ['is ahead of what its owner said a moment before', [[0, 5]], 6, 0],
  [
    'misses only what is new at this look',
    [
      [0, 5],
      [1000, 9],
    ],
    5,
    0,
  ],
  [
    'misses a change of the look before',
    [
      [0, 5],
      [1000, 9],
      [4000, 12],
    ],
    5,
    3000,
  ],
  [
    'misses the oldest one',
    [
      [0, 5],
      [1000, 9],
      [4000, 12],
    ],
    4,
    4000,
  ],
  [
    'has the positions of a restored backup',
    [
      [0, 500],
      [1000, 20],
      [9000, 20],
    ],
    20,
    0,
  ],
  [
    'misses changes of a restored backup',
    [
      [0, 500],
      [1000, 20],
      [9000, 20],
    ],
    19,
    8000,
  ],
  ['follows a schema without a look', [], 0, 0],
] as const)('a follower that %s', (_rule, looks, position, lateMs) => {
  expect(lateAfter(looks, position)).toBe(lateMs)
})

test('the memory of looks is bounded', () => {
  const looks = Array.from({ length: 1000 }, (_, at) => [at, at + 1] as const)
  expect(lateAfter(looks, 0)).toBe(99)
})
