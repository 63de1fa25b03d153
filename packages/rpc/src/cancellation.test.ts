import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openCancellation } from './cancellation.js'
import { Fault } from './fault.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('a call ends at its limit', () => {
  const { signal } = openCancellation(1000)
  vi.advanceTimersByTime(500)
  expect(signal.aborted).toBe(false)
  vi.advanceTimersByTime(520)
  expect(signal.reason).toMatchObject({ code: 'TIMEOUT' })
})

test('a cancelled call ends with its first reason', () => {
  const { signal, cancel } = openCancellation(1000)
  cancel(new Fault('UNAVAILABLE'))
  cancel(new Fault('TIMEOUT'))
  expect(signal.reason).toMatchObject({ code: 'UNAVAILABLE' })
})

test('a call that was answered is no longer observed', () => {
  const { signal, forget } = openCancellation(1000)
  forget()
  vi.advanceTimersByTime(2000)
  expect(signal.aborted).toBe(false)
  expect(vi.getTimerCount()).toBe(0)
})
