import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { releaseMemoryAtRest } from './release-memory.js'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
})
afterEach(() => {
  vi.useRealTimers()
})

test('a process at rest gives the memory of its last work back', async () => {
  const target = garbage()
  await nextTurn() // a WeakRef keeps its object until the end of the turn that created it
  using _released = releaseMemoryAtRest(Number.MAX_SAFE_INTEGER)
  vi.advanceTimersByTime(10_000)
  expect(target.deref()).toBeUndefined()
})

test('a process with many old objects is not stopped for a collection', async () => {
  const target = garbage()
  await nextTurn() // a WeakRef keeps its object until the end of the turn that created it
  using _released = releaseMemoryAtRest(1)
  vi.advanceTimersByTime(10_000)
  expect(target.deref()).toBeDefined()
})

/** An object that nothing else refers to, between others. */
function garbage(): WeakRef<object> {
  const objects = Array.from({ length: 200_000 }, (_, at) => ({ at, text: `object ${at}` }))
  return new WeakRef(objects[100_000] ?? {})
}
