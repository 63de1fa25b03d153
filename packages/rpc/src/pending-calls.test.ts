import { expect, test } from 'vitest'
import { MAX_PENDING, openPendingCalls, type Pending } from './pending-calls.js'

const call = (tag: number): Pending => ({
  tag,
  bytes: Buffer.alloc(0),
  resolve: () => undefined,
  reject: () => undefined,
  cancel: () => undefined,
})

test('a call is found by its tag alone, and leaves its place to others', () => {
  const calls = openPendingCalls()
  const far = 5 + 1024
  calls.add(call(5))
  expect([calls.get(5)?.tag, calls.get(far), calls.isFree(far), calls.isFree(6)]).toEqual([
    5,
    undefined,
    false,
    true,
  ])
  calls.delete(far)
  expect(calls.count()).toBe(1)
  calls.delete(5)
  calls.delete(5)
  expect([calls.count(), calls.isFree(far)]).toEqual([0, true])
})

test('as many calls as a client may have find places, also around the end of the tags', () => {
  const calls = openPendingCalls()
  const first = 0xffff_ffff - 500
  const tags = Array.from({ length: MAX_PENDING }, (_, n) => ((first - 1 + n) % 0xffff_ffff) + 1)
  for (const tag of tags) {
    expect(calls.isFree(tag)).toBe(true)
    calls.add(call(tag))
  }
  expect(calls.count()).toBe(MAX_PENDING)
  expect(calls.all().map(({ tag }) => tag)).toEqual(tags.toSorted((a, b) => a - b))
})
