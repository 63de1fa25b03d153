import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { tick } from './periodic.js'

beforeEach(() => void vi.useFakeTimers({ now: 0 }))
afterEach(() => void vi.useRealTimers())

test('ticks come at the same time, whenever they were started, and never in quick succession', async () => {
  const times: [name: string, at: number][] = []
  const started: Disposable[] = []
  const start = (name: string, everyMs: number): void => {
    started.push(tick(everyMs, () => void times.push([name, performance.now()])))
  }
  start('a', 1000)
  await vi.advanceTimersByTimeAsync(700)
  start('b', 1000)
  start('slow', 3000)
  await vi.advanceTimersByTimeAsync(5800)
  for (const one of started) one[Symbol.dispose]()
  await vi.advanceTimersByTimeAsync(5000)
  const of = (wanted: string) => times.flatMap(([name, at]) => (name === wanted ? [at] : []))
  const [a, b] = [of('a'), of('b')]
  expect(a.length).toBeGreaterThan(4)
  expect(a).toEqual(expect.arrayContaining(b))
  expect(a).toEqual(expect.arrayContaining(of('slow')))
  const pauses = a.map((at, n) => at - (a[n - 1] ?? 0)).slice(1)
  expect(new Set(pauses)).toEqual(new Set([1000]))
})
