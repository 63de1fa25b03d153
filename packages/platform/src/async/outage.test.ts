import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openOutage } from './outage.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function open(isEnding = false) {
  const reported: unknown[] = []
  const outage = openOutage((err) => void reported.push(err), { lastsMs: 3000, isEnding: () => isEnding })
  return { reported, outage }
}

test('a failure that lasts is reported once, with the latest error', () => {
  const { reported, outage } = open()
  outage.failed('first')
  vi.advanceTimersByTime(2999)
  outage.failed('second')
  expect(reported).toEqual([])
  vi.advanceTimersByTime(1)
  outage.failed('third')
  vi.advanceTimersByTime(60_000)
  expect(reported).toEqual(['second'])
})

test('a failure that ends in time is not reported', () => {
  const { reported, outage } = open()
  outage.failed('restart of a peer')
  outage.works()
  vi.advanceTimersByTime(60_000)
  expect(reported).toEqual([])
})

test('each outage is reported', () => {
  const { reported, outage } = open()
  for (const err of ['first', 'second']) {
    outage.failed(err)
    vi.advanceTimersByTime(3000)
    outage.works()
  }
  expect(reported).toEqual(['first', 'second'])
})

test('nothing is reported while the process stops, or after the end', () => {
  const stopping = open(true)
  stopping.outage.failed('peer has stopped')
  const ended = open()
  ended.outage.failed('away')
  ended.outage[Symbol.dispose]()
  vi.advanceTimersByTime(60_000)
  expect([...stopping.reported, ...ended.reported]).toEqual([])
})
