import { expect, test, vi } from 'vitest'
import { type EventSink, openSharedSource } from './shared-source.js'

test('a listener that comes as the last one leaves waits for a reader of its own', async () => {
  const readers: EventSink[] = []
  await using source = openSharedSource(async (sink, signal) => {
    readers.push(sink)
    const { promise, resolve } = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => resolve())
    await promise
  })
  const never = new AbortController().signal
  const first = source.listen(() => undefined)
  await vi.waitFor(() => expect(readers).toHaveLength(1))
  readers[0]?.opened()
  await source.ready(never)

  first[Symbol.dispose]()
  using _second = source.listen(() => undefined)
  const isReady = vi.fn()
  const ready = source.ready(never).then(isReady)
  readers[0]?.opened() // it has not heard that it is stopped
  await vi.waitFor(() => expect(readers).toHaveLength(2))
  expect(isReady).not.toHaveBeenCalled()
  readers[1]?.opened()
  await ready
})
