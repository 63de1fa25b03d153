import { expect, test } from 'vitest'
import { openUpdateTimes, type StoredTimes, type TimeUpdate } from './update-times.js'

const policy = (number: number, atMs: number, ids: TimeUpdate['ids'], timeline = 't'): TimeUpdate => ({
  schema: 'policy',
  position: { timeline, number },
  atMs,
  ids,
})
const identity = (number: number, atMs: number, ids: TimeUpdate['ids']): TimeUpdate => ({
  ...policy(number, atMs, ids),
  schema: 'identity',
})
const stored = (more: Partial<StoredTimes>): StoredTimes => ({
  batch: 1,
  everybodyAtMs: 0,
  covered: {},
  rows: [],
  ...more,
})
const upto = (number: number) => ({ policy: { timeline: 't', number } })

test('the time is the time of the change', () => {
  const times = openUpdateTimes()
  times.add(policy(1, 1000, ['a']))
  expect([times.of('a'), times.of('b')]).toEqual([1000, 0])
})

test('a time always moves, also when the clock of the change is behind', () => {
  const times = openUpdateTimes()
  times.add(policy(1, 1000, ['a']))
  times.add(identity(1, 900, ['a']))
  expect(times.of('a')).toBe(1001)
})

test('a change for all identities gives all of them a new time', () => {
  const times = openUpdateTimes()
  times.add(policy(1, 1000, ['a']))
  times.add(identity(1, 900, 'all'))
  expect([times.of('a'), times.of('b')]).toEqual([1001, 1001])
  expect(times.draft()).toEqual({ everybodyAtMs: 1001, rows: [], isEmpty: false })
})

test('a time that is not stored yet stays the same while others are stored', () => {
  const times = openUpdateTimes()
  times.adopt(stored({ rows: [{ id: 'a', atMs: 500 }] }))
  times.add(policy(1, 1000, 'all'))
  times.add(policy(2, 1000, 'all'))
  const before = times.of('a')
  expect(times.adopt(stored({ batch: 2 }))).toEqual([])
  expect(times.adopt(stored({ batch: 3, rows: [{ id: 'b', atMs: 600 }] }))).toEqual([])
  expect([before, times.of('a')]).toEqual([1001, 1001])
})

test('stored times replace what this replica would have stored', () => {
  const times = openUpdateTimes()
  times.add(policy(1, 1000, ['a', 'b']))
  const differ = times.adopt(
    stored({
      covered: upto(1),
      rows: [
        { id: 'a', atMs: 1000 },
        { id: 'b', atMs: 1005 },
      ],
    }),
  )
  expect([differ, times.of('a'), times.of('b'), times.draft().isEmpty]).toEqual([['b'], 1000, 1005, true])
})

test('updates that are not stored stay pending, on top of the stored times', () => {
  const times = openUpdateTimes()
  times.add(policy(1, 1000, ['a']))
  times.add(policy(2, 1000, ['a']))
  expect(times.of('a')).toBe(1001)
  expect(times.adopt(stored({ covered: upto(1), rows: [{ id: 'a', atMs: 1000 }] }))).toEqual([])
  expect([times.of('a'), times.draft().rows]).toEqual([1001, [{ id: 'a', atMs: 1001 }]])
})

test('a stored time for all identities differs for all', () => {
  const times = openUpdateTimes()
  times.adopt(stored({ rows: [{ id: 'a', atMs: 1 }] }))
  expect(times.adopt(stored({ batch: 2, everybodyAtMs: 5 }))).toBe('all')
  expect(times.of('a')).toBe(5)
})

test('the first stored times differ for all, unless there are updates of this replica', () => {
  const rows = [{ id: 'a', atMs: 7 }]
  expect(openUpdateTimes().adopt(stored({ rows }))).toBe('all')
  const times = openUpdateTimes()
  times.add(policy(1, 1000, ['b']))
  expect(times.adopt(stored({ rows }))).toEqual(['a'])
})

test('updates of an old timeline are covered with the beginning of the new one', () => {
  const times = openUpdateTimes()
  times.add(policy(9, 1000, ['a'], 'old'))
  times.rebase('policy', { timeline: 't', number: 1 })
  times.adopt(stored({ covered: upto(1), rows: [{ id: 'a', atMs: 1000 }] }))
  expect(times.draft().isEmpty).toBe(true)
})

test('a deleted identity leaves no time', () => {
  const times = openUpdateTimes()
  times.adopt(stored({ rows: [{ id: 'a', atMs: 7 }] }))
  times.forget('a')
  expect(times.of('a')).toBe(0)
})

test('a deleted identity gets no time from earlier updates', () => {
  const times = openUpdateTimes()
  times.add(policy(2, 1000, ['a', 'b']))
  times.forget('a')
  times.adopt(stored({ covered: upto(1) }))
  expect(times.draft().rows).toEqual([{ id: 'b', atMs: 1000 }])
})
