import { parseQuery } from '@overlay/model'
import { expect, test } from 'vitest'
import { withoutLinkedSets } from './linked-sets.js'
import { mutators } from './mutators.js'
import { emptyState } from './state.js'

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

/** The policies that the filter leaves, as one word; null: no such filter. */
function found(filter: string): string | null {
  const where = withoutLinkedSets(state, parseQuery(filter, { sort: '', limit: '', offset: '' }).where)
  if (where === null || where.op === 'false') return where && ''
  return 'values' in where ? where.values.join(' ') : JSON.stringify(where)
}

test.each([
  ['anyOf(identities) = "i1"', 'one both'],
  ['anyOf(identities) = "i2"', 'both'],
  ['anyOf(identities) = "nobody"', ''],
  ['anyOf(identities) in ["i2", "nobody"]', 'both'],
  ['anyOf(identities) != "i2"', 'one'],
  ['anyOf(identities) not in ["i2"]', 'one both'],
  ['allOf(identities) = "i1"', 'none one'],
  ['allOf(identities) != "i1"', 'none'],
  ['isEmpty(identities)', 'none'],
  ['count(identities) > 1', 'both'],
  ['isEmpty(services)', 'none one both'],
  ['anyOf(identities) contains "i"', null],
  ['identities = "i1"', null],
])('%s', (filter, expected) => {
  expect(found(filter)).toBe(expected)
})

test('other terms of the filter stay', () => {
  expect(
    withoutLinkedSets(
      state,
      parseQuery('not (name = "x" or anyOf(identities) = "i2")', { sort: '', limit: '', offset: '' }).where,
    ),
  ).toEqual({
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
