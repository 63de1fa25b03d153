import { expect, test } from 'vitest'
import { emptyTouched, type Touched, touch } from '../domain/touched.js'
import { JOURNAL_BYTES } from '../limits.js'
import { openJournal } from './journal.js'

const at = (number: number) => ({ timeline: 't', number })
const heads = (policy: number, identity = 0) => ({ policy: at(policy), identity: at(identity) })
const touching = (id: string): Touched => {
  const touched = emptyTouched()
  touched.rows.services.set(id, touch.written)
  return touched
}
const idsIn = (touched: Touched | undefined) => touched && [...touched.rows.services.keys()]

/** Has applied the services a to c at the numbers 1 to 3 of policy. */
function opened() {
  const journal = openJournal()
  for (const schema of ['policy', 'identity']) journal.restart(schema, at(0))
  const [first] = [journal.reach(heads(0))]
  for (const [before, id] of ['a', 'b', 'c'].entries())
    journal.add({ schema: 'policy', after: at(before), upto: at(before + 1), touched: touching(id) })
  const missedBy = async (index: number, timeline = first.checkpoint.timeline) => {
    const missed = await journal.missedBy(timeline, index, () => undefined)
    return missed && [idsIn(missed.touched), idsIn(missed.unsure)]
  }
  return { journal, first, missedBy }
}

test('what was touched after a moment is known until a load', () => {
  const { journal, first } = opened()
  expect(idsIn(journal.since(first.moment))).toEqual(['a', 'b', 'c'])
  expect(idsIn(journal.since(journal.now()))).toEqual([])
  journal.restart('identity', at(9))
  expect(journal.since(first.moment)).toBeUndefined()
})

test('an index is even where memory has nothing beyond its checkpoint', () => {
  const { journal } = opened()
  const [exact, beyond] = [journal.reach(heads(3)).checkpoint, openJournal().reach(heads(3)).checkpoint]
  expect([exact.index, beyond.index].map((index) => index % 2)).toEqual([0, 0])
  journal.add({ schema: 'identity', after: at(0), upto: at(1), touched: touching('d') })
  expect(journal.reach(heads(3)).checkpoint.index).toBe(exact.index + 1)
  expect(journal.reach(heads(3, 1)).checkpoint.index).toBe(exact.index + 2)
})

test('a router may lack what was touched after the last checkpoint before its index', async () => {
  const { journal, first, missedBy } = opened()
  const index = journal.note(heads(2)).index
  journal.reach(heads(3))
  expect(await missedBy(index)).toEqual([['c'], []])
  expect(await missedBy(first.checkpoint.index)).toEqual([['a', 'b', 'c'], []])
})

test('it may have what lies between the checkpoints around its index, and all later changes after an inexact one', async () => {
  const { journal, first, missedBy } = opened()
  const last = journal.reach(heads(3)).checkpoint
  expect(await missedBy(last.index - 2)).toEqual([
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
  ])
  const { index } = first.checkpoint
  expect(await missedBy(index + 1)).toEqual([
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
  ])
})

test('a message that lies across a checkpoint is unsure', async () => {
  const { journal, missedBy } = opened()
  const { index } = journal.note(heads(4))
  journal.add({ schema: 'policy', after: at(3), upto: at(6), touched: touching('d') })
  journal.reach(heads(6))
  expect(await missedBy(index)).toEqual([['d'], ['d']])
})

test('another timeline, an index before all checkpoints, and one before a load are unknown', async () => {
  const { journal, first, missedBy } = opened()
  const { index } = first.checkpoint
  expect(await missedBy(index, 'another')).toBeUndefined()
  expect(await missedBy(index - 2)).toBeUndefined()
  journal.restart('policy', at(3))
  expect(await missedBy(index)).toBeUndefined()
})

test('the oldest changes are forgotten', () => {
  const { journal, first } = opened()
  const touched = emptyTouched()
  for (let id = 0; id < 10_000; id++) touched.rows.services.set(String(id), touch.written)
  for (let number = 3; number < JOURNAL_BYTES / 500_000; number++)
    journal.add({ schema: 'policy', after: at(number), upto: at(number + 1), touched })
  expect(journal.since(first.moment)).toBeUndefined()
  expect(idsIn(journal.since(journal.now() - 1))).toHaveLength(10_000)
})
