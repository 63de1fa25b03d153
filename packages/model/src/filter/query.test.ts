import { expect, test } from 'vitest'
import { FilterError } from './filter.js'
import { type FilterLimits, strangerLimits } from './parser.js'
import { limitText, parseQuery } from './query.js'

const parameters = { sort: '', limit: '', offset: '' }

test('without filter and parameters the first ten rows are asked for', () => {
  expect(parseQuery('', parameters)).toEqual({ where: { op: 'true' }, sort: [], offset: 0, limit: 10 })
})

test.each([
  ['', '', 10],
  ['', '7', 7],
  ['', '0', 10],
  ['', '-1', null],
  ['', '-2', 10],
  ['', '500', 500],
  ['', '501', 500],
  ['', '99999999999999999999', 500],
  ['limit 3', '7', 3],
  ['limit 0', '7', 10],
  ['limit -1', '7', null],
  ['limit none', '7', null],
  ['limit 1000', '7', 500],
])('filter %j and limit %j give %j', (filter, limit, expected) => {
  expect(parseQuery(filter, { ...parameters, limit }).limit).toBe(expected)
})

test.each([
  ['', '', 0],
  ['', '7', 7],
  ['', '-1', 0],
  ['', '100001', 100_000],
  ['skip 3', '7', 3],
  ['skip -3', '7', 0],
  ['skip 200000', '7', 100_000],
])('filter %j and offset %j give %j', (filter, offset, expected) => {
  expect(parseQuery(filter, { ...parameters, offset }).offset).toBe(expected)
})

test('the sort of the filter wins over the parameter', () => {
  const query = parseQuery('true sort by name', { ...parameters, sort: 'id DESC' })
  expect(query.sort).toEqual([{ symbol: 'name', descending: false }])
})

test('the sort parameter is read like the sort of a filter', () => {
  expect(parseQuery('true', { ...parameters, sort: 'name DESC, id' }).sort).toEqual([
    { symbol: 'name', descending: true, by: 'parameter' },
    { symbol: 'id', descending: false, by: 'parameter' },
  ])
})

test.each([
  ['name =', parameters, 'INVALID_FILTER'],
  ['true sort by', parameters, 'INVALID_FILTER'],
  ['', { ...parameters, sort: 'name up' }, 'INVALID_SORT_IDENTIFIER'],
  ['true sort by name', { ...parameters, sort: ' ' }, 'INVALID_SORT_IDENTIFIER'],
  ['', { ...parameters, limit: 'abc' }, 'INVALID_PAGINATION'],
  ['', { ...parameters, offset: '1.5' }, 'INVALID_PAGINATION'],
])('filter %j with %j is refused as %s', (filter, paging, code) => {
  expect(() => parseQuery(filter, paging)).toThrow(expect.objectContaining({ code }))
})

test('the limit of all is a number that JavaScript cannot hold', () => {
  expect(limitText(parseQuery('limit none', parameters))).toBe('9223372036854775807')
  expect(limitText(parseQuery('limit 5', parameters))).toBe('5')
})

test('a filter is bounded in length and conditions, and more tightly for callers without a session', () => {
  const conditions = (count: number) => Array(count).fill('a = 1').join(' or ')
  const read = (filter: string, limits?: FilterLimits) => () => parseQuery(filter, parameters, limits)
  expect(read(conditions(1000))).not.toThrow()
  expect(read(conditions(1001))).toThrow(FilterError)
  expect(read(conditions(10), strangerLimits)).not.toThrow()
  expect(read(conditions(11), strangerLimits)).toThrow(FilterError)
  expect(read(`a = "${'x'.repeat(2000)}"`)).not.toThrow()
  expect(read(`a = "${'x'.repeat(2000)}"`, strangerLimits)).toThrow(FilterError)
  const sort = Array(1000).fill('name').join()
  expect(() => parseQuery('', { ...parameters, sort }, strangerLimits)).toThrow(FilterError)
})
