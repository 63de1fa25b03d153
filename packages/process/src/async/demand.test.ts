import { beforeEach, expect, test, vi } from 'vitest'
import { openDemand } from './demand.js'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
  return () => vi.useRealTimers()
})

test('a demand lasts for a while from its start or its latest use, and begins again after a pause', () => {
  const begins = vi.fn()
  const demand = openDemand(1000, begins)
  expect(demand.lasts()).toBe(true)
  vi.advanceTimersByTime(900)
  demand.note()
  vi.advanceTimersByTime(900)
  expect([demand.lasts(), begins.mock.calls.length]).toEqual([true, 0])
  vi.advanceTimersByTime(100)
  expect(demand.lasts()).toBe(false)
  demand.note()
  expect(begins).toHaveBeenCalledTimes(1)
})
