import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { boundedLines } from './bounded-lines.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function openLines() {
  const lines: [object, string][] = []
  const log = { info: (facts: object, message: string) => void lines.push([facts, message]) }
  return { lines, write: boundedLines(log, 'login refused', { perSource: 2, total: 3, withinMs: 60_000 }) }
}

test('a million lines of one source become a few, and their number', () => {
  const { lines, write } = openLines()
  for (let n = 1; n <= 1_000_000; n++) write('a', { n })
  vi.advanceTimersByTime(60_000)
  expect(lines).toEqual([
    [{ n: 1 }, 'login refused'],
    [{ n: 2 }, 'login refused'],
    [{ lines: 'login refused', omitted: 999_998, withinSeconds: 60 }, 'lines omitted'],
  ])
})

test('a source with many lines leaves room for another one', () => {
  const { lines, write } = openLines()
  for (let n = 1; n <= 10; n++) write('a', { n })
  write('b', { n: 11 })
  expect(lines.map(([facts]) => facts)).toEqual([{ n: 1 }, { n: 2 }, { n: 11 }])
})

test('many sources share a total', () => {
  const { lines, write } = openLines()
  for (let n = 1; n <= 10; n++) write(`source ${n}`, { n })
  expect(lines).toHaveLength(3)
})

test('a new period begins with all lines, and one without omissions ends silently', () => {
  const { lines, write } = openLines()
  write('a', { n: 1 })
  vi.advanceTimersByTime(60_000)
  write('a', { n: 2 })
  write('a', { n: 3 })
  expect(lines.map(([facts]) => facts)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
})
