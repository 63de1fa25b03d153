import { parseQuery } from '@overlay/model'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { stepEngine, steps } from '../../testing/steps.js'
import { withoutLinkedSets } from './linked-sets.js'
import { mutators } from './mutators.js'
import { emptyState, type State } from './state.js'

const state = emptyState()
for (const id of ['i1', 'i2']) mutators.identities.put(state, { id, attributes: [], isAdmin: false })
const policy = (id: string, type: 'Dial' | 'Bind', identityRoles: string[]) =>
  mutators['service-policies'].put(state, {
    id,
    type,
    semantic: 'AnyOf',
    identityRoles,
    serviceRoles: [],
    postureCheckRoles: [],
  })
policy('none', 'Dial', [])
policy('one', 'Dial', ['@i1'])
policy('both', 'Bind', ['#all'])

const without = (filter: string, from: State = state) =>
  withoutLinkedSets(
    from,
    parseQuery(filter, { sort: '', limit: '', offset: '' }).where,
    async () => undefined,
  )

/** The policies that the filter leaves, as one word; null: no such filter. */
async function found(filter: string): Promise<string | null> {
  const where = await without(filter)
  if (where === null || where.op === 'false') return where && ''
  return 'values' in where ? where.values.join(' ') : JSON.stringify(where)
}

test.each([
  ['anyOf(identities) = "i1"', 'one both'],
  ['anyOf(identities) = "i2"', 'both'],
  ['anyOf(identities) = "nobody"', ''],
  ['anyOf(identities) in ["i2", "nobody"]', 'both'],
  ['allOf(identities) in ["i1", "i2"]', 'none one both'],
  ['anyOf(identities) != "i2"', 'one'],
  ['anyOf(identities) not in ["i2"]', 'one both'],
  ['allOf(identities) = "i1"', 'none one'],
  ['allOf(identities) != "i1"', 'none'],
  ['isEmpty(identities)', 'none'],
  ['count(identities) > 1', 'both'],
  ['isEmpty(services)', 'none one both'],
  ['anyOf(identities) contains "i"', null],
  ['identities = "i1"', null],
])('%s', async (filter, expected) => {
  expect(await found(filter)).toBe(expected)
})

test('other terms of the filter stay', async () => {
  expect(await without('not (name = "x" or anyOf(identities) = "i2")')).toEqual({
    op: 'not',
    term: {
      op: 'or',
      terms: [
        { op: '=', symbol: 'name', value: 'x' },
        { op: 'in', symbol: 'id', values: ['both'] },
      ],
    },
  })
})

const named = ['i1', 'i3']
const isNamed = (id: string): boolean => named.includes(id)
const list = '["i1", "i3"]'

test.each<[string, (members: readonly string[]) => boolean]>([
  ['isEmpty(identities)', (members) => members.length === 0],
  ['count(identities) >= 2', (members) => members.length >= 2],
  [`anyOf(identities) in ${list}`, (members) => members.some(isNamed)],
  [`allOf(identities) in ${list}`, (members) => members.every(isNamed)],
  [`anyOf(identities) not in ${list}`, (members) => !members.every(isNamed)],
  [`allOf(identities) not in ${list}`, (members) => !members.some(isNamed)],
  ['anyOf(identities) != "i1"', (members) => members.length > 0 && !members.includes('i1')],
])('%s is true of the policies that select such identities, after any changes', async (filter, isTrue) => {
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      const state = emptyState()
      for (const step of sequence) stepEngine(state, step)
      const { identities, dial, bind } = state
      const ids = [dial.left, bind.left].flatMap((index) =>
        [...index.policyIds()].filter((id) => isTrue(identities.idsOf(index.membersOf(id)))),
      )
      const expected = ids.length > 0 ? { op: 'in', symbol: 'id', values: ids } : { op: 'false' }
      expect(await without(filter, state)).toEqual(expected)
    }),
    { numRuns: 50 },
  )
})
