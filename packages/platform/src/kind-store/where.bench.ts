import { type FilterSymbol, parseQuery } from '@overlay/model'
import { bench } from 'vitest'
import { orderOf } from './order.js'
import { whereOf } from './where.js'

const symbols = new Map<string, FilterSymbol>([
  ['id', { column: 'id', type: 'string', notNull: true }],
  ['name', { column: 'name', type: 'string', notNull: true }],
  ['roleAttributes', { column: 'role_attributes', type: 'strings' }],
])

for (const filter of [
  'name = "x"',
  'name contains "x" and anyOf(roleAttributes) = "a" sort by name limit 100',
  `${'name = "x" or '.repeat(900)}false`,
])
  bench(`${filter.slice(0, 80)} (${filter.length} characters)`, () => {
    const { where, sort } = parseQuery(filter, { sort: '', limit: '', offset: '' })
    return void [whereOf(where, symbols).text, orderOf(sort, symbols).text]
  })
