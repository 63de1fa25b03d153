import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { onAbort, openDeadlines } from './limits.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('all deadlines expire in time with one timer, which stops after the last', () => {
  const expireAfter = openDeadlines()
  const expired: number[] = []
  for (const ms of [500, 100, 100, 10_000]) expireAfter(ms, () => expired.push(ms))
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

test('a cancelled deadline never expires', () => {
  const expireAfter = openDeadlines()
  const expired = vi.fn()
  expireAfter(100, expired)()
  vi.advanceTimersByTime(1000)
  expect(expired).not.toHaveBeenCalled()
})

test('the timer stops when no deadline is pending, and starts again with the next one', () => {
  const expireAfter = openDeadlines()
  const expired = vi.fn()
  expireAfter(10_000, expired)()
  expect(expireAfter(Number.POSITIVE_INFINITY, expired)()).toBe(undefined)
  vi.advanceTimersByTime(20)
  expect(vi.getTimerCount()).toBe(0)
  expireAfter(10_000, expired)
  vi.advanceTimersByTime(10_020)
  expect(expired).toHaveBeenCalledOnce()
})

test('a deadline that another one cancels when it expires does not expire', () => {
  const expireAfter = openDeadlines()
  const expired = vi.fn()
  const cancels: (() => void)[] = []
  for (let n = 0; n < 2; n++)
    cancels.push(
      expireAfter(100, () => {
        expired()
        for (const cancel of cancels) cancel()
      }),
    )
  vi.advanceTimersByTime(1000)
  expect(expired).toHaveBeenCalledOnce()
})

test('a deadline in the past expires at the next tick', () => {
  const expireAfter = openDeadlines()
  const expired = vi.fn()
  expireAfter(-5, expired)
  expect(expired).not.toHaveBeenCalled()
  vi.advanceTimersByTime(40)
  expect(expired).toHaveBeenCalledOnce()
})

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
