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
  outage.failed('second')
  vi.advanceTimersByTime(60_000)
  expect(reported).toEqual(['second'])
})

test('while an outage lasts, each cause that replaces another is reported, less and less often', () => {
  const { reported, outage } = open()
  const failure = (message: string) => new Error('not followed', { cause: new Error(message) })
  for (const message of ['too far behind', 'no such row', 'no such row', 'refused', 'no such row']) {
    outage.failed(failure(message))
    vi.advanceTimersByTime(60_000)
  }
  const causesOf = (): unknown[] => reported.map((err) => (err as { cause: Error }).cause.message)
  expect(causesOf()).toEqual(['too far behind', 'no such row', 'refused', 'no such row'])
  for (let i = 0; i < 120; i++) {
    outage.failed(failure(`at ${i}`))
    vi.advanceTimersByTime(1000)
  }
  expect(reported).toHaveLength(6)
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
