import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { after, whenAborted } from './limits.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('each deadline expires at its time, by one timer that ends with the last', () => {
  const expired: number[] = []
  for (const ms of [500, 100, 100, 10_000]) after(ms, () => expired.push(ms))
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(99)
  expect(expired).toEqual([])
  vi.advanceTimersByTime(41)
  expect(expired).toEqual([100, 100])
  vi.advanceTimersByTime(360)
  expect(expired).toEqual([100, 100, 500])
  vi.advanceTimersByTime(10_000)
  expect(expired).toEqual([100, 100, 500, 10_000])
  vi.advanceTimersByTime(1000)
  expect(vi.getTimerCount()).toBe(0)
})

test('a deadline that is taken back never expires', () => {
  const expired = vi.fn()
  after(100, expired)()
  vi.advanceTimersByTime(1000)
  expect(expired).not.toHaveBeenCalled()
})

test('one that is over expires with the next tick', () => {
  const expired = vi.fn()
  after(-5, expired)
  expect(expired).not.toHaveBeenCalled()
  vi.advanceTimersByTime(40)
  expect(expired).toHaveBeenCalledOnce()
})

test('an abort is told once, at once when it has been before, and not when nobody wants it any more', () => {
  const abort = new AbortController()
  const [early, gone, late] = [vi.fn(), vi.fn(), vi.fn()]
  whenAborted(abort.signal, early)
  whenAborted(abort.signal, gone)()
  abort.abort()
  whenAborted(abort.signal, late)
  expect([early, gone, late].map((f) => f.mock.calls.length)).toEqual([1, 0, 1])
  expect(getEventListeners(abort.signal, 'abort')).toEqual([])
})
