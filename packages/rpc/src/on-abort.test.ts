import { getEventListeners } from 'node:events'
import { expect, test, vi } from 'vitest'
import { onAbort } from './on-abort.js'

test('a listener is called once, at once after an abort, and never when it was removed', () => {
  const abort = new AbortController()
  const [early, removed, late] = [vi.fn(), vi.fn(), vi.fn()]
  onAbort(abort.signal, early)
  onAbort(abort.signal, removed)()
  abort.abort()
  onAbort(abort.signal, late)
  expect([early, removed, late].map((f) => f.mock.calls.length)).toEqual([1, 0, 1])
  expect(getEventListeners(abort.signal, 'abort')).toEqual([])
})
