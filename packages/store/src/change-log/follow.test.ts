import { expect, test } from 'vitest'
import { follow } from './follow.js'

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

test.each([
  ['just now', 0, true],
  ['longer ago than anybody may be trusted', 60_000, false],
])('trust counts from when its owner looked: %s', async (_, ageMs, expected) => {
  let applied = false
  async function* open(signal: AbortSignal) {
    yield ageMs
    applied = true
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  }
  await using followed = follow(
    'identity',
    { warn: () => undefined },
    open,
    () => ({}),
    (age) => age,
  )
  await until(() => applied)
  expect(followed.trusted()).toBe(expected)
})
