import { expect, test } from 'vitest'
import { followStream } from './follow-stream.js'

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

test.each([
  ['just now', 0, true],
  ['longer ago than a follower is fresh', 60_000, false],
])('freshness counts from the poll of the owner: %s', async (_, ageMs, expected) => {
  let applied = false
  async function* open(signal: AbortSignal) {
    yield ageMs
    applied = true
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  }
  await using followed = followStream(
    'identity',
    { warn: () => undefined },
    open,
    () => ({}),
    (age) => age,
  )
  await until(() => applied)
  expect(followed.isFresh()).toBe(expected)
})
