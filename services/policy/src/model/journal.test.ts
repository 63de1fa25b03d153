import type { Positions } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { emptyTouched, type Touched, touch } from '../domain/touched.js'
import { JOURNAL_BYTES } from '../limits.js'
import { openJournal, type Reached } from './journal.js'

const at = (number: number) => ({ timeline: 't', number })
const heads = (policy: number, identity = 0) => ({ policy: at(policy), identity: at(identity) })
const touching = (id: string): Touched => {
  const touched = emptyTouched()
  touched.rows.services.set(id, touch.written)
  return touched
}
const idsIn = (touched: Touched | undefined) => touched && [...touched.rows.services.keys()]

/** Has applied the services a to c at the numbers 1 to 3 of policy, and was at a checkpoint before each. */
function opened() {
  const journal = openJournal()
  for (const schema of ['policy', 'identity']) journal.restart(schema, at(0))
  const reach = (to: Positions): Reached => journal.reach(to, journal.now())
  const first = reach(heads(0))
  const add = (schema: string, number: number, id: string) =>
    journal.add({ schema, upto: at(number), touched: touching(id) })
  const missedBy = async (index: number, timeline = first.checkpoint.timeline) => {
    const missed = await journal.missedBy(timeline, index, () => undefined)
    return missed && [idsIn(missed.touched), idsIn(missed.unsure)]
  }
  add('policy', 1, 'a')
  const second = reach(heads(1))
  add('policy', 2, 'b')
  add('policy', 3, 'c')
  return { journal, add, reach, first, second, missedBy }
}

test('what was touched after a moment is known until a load', () => {
  const { journal, first } = opened()
  expect(idsIn(journal.since(first.moment))).toEqual(['a', 'b', 'c'])
  expect(idsIn(journal.since(journal.now()))).toEqual([])
  journal.restart('identity', at(9))
  expect(journal.since(first.moment)).toBeUndefined()
})

test('an index is even where memory has nothing beyond its checkpoint', () => {
  const { add, reach } = opened()
  const exact = reach(heads(3)).checkpoint.index
  expect(exact % 2).toBe(0)
  add('identity', 1, 'd')
  expect(reach(heads(3)).checkpoint.index).toBe(exact + 1)
  expect(reach(heads(3, 1)).checkpoint.index).toBe(exact + 2)
})

test('after a load, memory may have rows that are newer than heads that were read before it ended', () => {
  const { journal } = opened()
  const before = journal.now()
  journal.restart('policy', at(3))
  expect(journal.reach(heads(3), before).checkpoint.index % 2).toBe(1)
  expect(journal.reach(heads(3), journal.now()).checkpoint.index % 2).toBe(1)
  expect(journal.reach(heads(4), journal.now()).checkpoint.index % 2).toBe(0)
})

test('a router with the index of a checkpoint lacks what was touched after it', async () => {
  const { first, second, missedBy } = opened()
  expect(await missedBy(first.checkpoint.index)).toEqual([['a', 'b', 'c'], []])
  expect(await missedBy(second.checkpoint.index)).toEqual([['b', 'c'], []])
})

test('with an index between two checkpoints, it may have what was touched between them', async () => {
  const { add, reach, second, missedBy } = opened()
  const last = reach(heads(3)).checkpoint.index
  add('policy', 4, 'd')
  expect(await missedBy(last - 2)).toEqual([
    ['b', 'c', 'd'],
    ['b', 'c'],
  ])
  expect(await missedBy(last - 2)).toEqual(await missedBy(second.checkpoint.index + 2))
})

test('with an inexact index, it may have everything later', async () => {
  const { second, missedBy } = opened()
  expect(await missedBy(second.checkpoint.index + 1)).toEqual([
    ['b', 'c'],
    ['b', 'c'],
  ])
})

test('what lies between two checkpoints in another order than in other replicas is unknown', async () => {
  const { add, reach, second, missedBy } = opened()
  add('identity', 1, 'd')
  const last = reach(heads(3, 1)).checkpoint.index
  expect(await missedBy(last - 2)).toBeUndefined()
  expect(await missedBy(second.checkpoint.index)).toEqual([['b', 'c', 'd'], []])
})

test('another timeline, an index before all checkpoints, and one before a load are unknown', async () => {
  const { journal, first, missedBy } = opened()
  const { index } = first.checkpoint
  expect(await missedBy(index, 'another')).toBeUndefined()
  expect(await missedBy(index - 2)).toBeUndefined()
  journal.restart('policy', at(3))
  expect(await missedBy(index)).toBeUndefined()
})

test('the oldest changes are forgotten', async () => {
  const { journal, first, missedBy } = opened()
  const touched = emptyTouched()
  for (let id = 0; id < 10_000; id++) touched.rows.services.set(String(id), touch.written)
  for (let number = 3; number < JOURNAL_BYTES / 500_000; number++)
    journal.add({ schema: 'policy', upto: at(number + 1), touched })
  expect(journal.since(first.moment)).toBeUndefined()
  expect(await missedBy(first.checkpoint.index)).toBeUndefined()
  expect(idsIn(journal.since(journal.now() - 1))).toHaveLength(10_000)
})
