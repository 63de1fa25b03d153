import { expect, test } from 'vitest'
import { openBackoff } from './backoff.js'

test('pauses double up to the limit, and start again after a success', async () => {
  const { signal } = new AbortController()
  const backoff = openBackoff({ firstMs: 1, longestMs: 3 })
  const pauses: number[] = []
  for (const _ of [1, 2, 3]) {
    pauses.push(backoff.nextMs())
    await backoff.pause(signal)
  }
  expect(pauses).toEqual([1, 2, 3])
  expect(backoff.isReset()).toBe(false)
  backoff.reset()
  expect([backoff.nextMs(), backoff.isReset()]).toEqual([1, true])
})

test('a pause ends when its signal is aborted', async () => {
  await openBackoff({ firstMs: 60_000, longestMs: 60_000 }).pause(AbortSignal.abort())
})
