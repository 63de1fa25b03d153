import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openDeadlines } from './deadlines.js'

test('keys are taken in the order of their last times, and each is kept once', () => {
  const step = fc.record({
    key: fc.integer({ min: 0, max: 60 }).map(String),
    atMs: fc.option(fc.integer({ min: 0, max: 50 })),
  })
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 200, size: 'max' }),
      fc.integer({ min: 0, max: 60 }),
      (steps, until) => {
        const deadlines = openDeadlines()
        const expected = new Map<string, number>()
        for (const { key, atMs } of steps) {
          if (atMs === null) {
            deadlines.delete(key)
            expected.delete(key)
          } else {
            deadlines.set(key, atMs)
            expected.set(key, atMs)
          }
          expect(deadlines.size).toBe(expected.size)
          expect(deadlines.nextMs).toBe([...expected.values()].sort((a, b) => a - b)[0])
        }
        const timesOf = (keys: readonly string[]) => keys.map((key) => expected.get(key))
        const due = [...expected.entries()].filter(([, at]) => at <= until)
        const taken = deadlines.takeUntil(until)
        expect([...taken].sort()).toEqual(due.map(([key]) => key).sort())
        expect(timesOf(taken)).toEqual(timesOf(taken).sort((a = 0, b = 0) => a - b))
        expect(deadlines.size).toBe(expected.size - due.length)
      },
    ),
  )
})
