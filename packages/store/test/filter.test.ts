import { FilterError, parseQuery } from '@overlay/model'
import { Fault } from '@overlay/rpc'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openThings, type Things } from './things.js'

let things: Things
beforeAll(async () => {
  things = await openThings()
})
afterAll(() => things[Symbol.asyncDispose]())

const rules: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  [
    'strings compare by bytes',
    [
      ['name = "alpha"', 'a'],
      ['name != "alpha"', 'bcd'],
      ['name < "a"', 'b'],
      ['name <= "alpha"', 'ab'],
      ['name > "alpha"', 'cd'],
      ['name >= "alpha"', 'acd'],
      ['name in ["alpha", "Beta", "x"]', 'ab'],
      ['name not in ["alpha", "Beta"]', 'cd'],
      ['name = "gamma \\"q\\""', 'c'],
      ['label < "a"', 'b'],
      ['shout = "ALPHA!"', 'a'],
      ['shout > "B" and shout contains "!"', 'bcd'],
    ],
  ],
  [
    'contains looks for the text as it is, icontains in any case',
    [
      ['name contains "eta"', 'b'],
      ['name contains "beta"', ''],
      ['name icontains "BETA"', 'b'],
      ['name not contains "a"', 'd'],
      ['name not icontains "B"', 'acd'],
      ['name icontains "ünder"', 'd'],
      ['note contains "_"', 'b'],
      ['note contains "%"', 'b'],
      ['note contains "\\\\"', 'b'],
      ['note contains ""', 'bcd'],
      ['note contains 1', 'd'],
    ],
  ],
  [
    'a comparison with a missing value is false, unless it is with null',
    [
      ['note = null', 'a'],
      ['note != null', 'bcd'],
      ['note = ""', 'c'],
      ['note != ""', 'bd'],
      ['note not contains "x"', 'cd'],
      ['note not icontains "X"', 'cd'],
      ['note not in ["x"]', 'bcd'],
      ['note < "5"', 'cd'],
      ['not note != "x"', 'a'],
      ['not note = "12"', 'abc'],
      ['not (note = "x" or note = "y")', 'abcd'],
      ['weight != 1', 'bcd'],
      ['weight not between 0 and 3', 'cd'],
      ['seenAt = null', 'ad'],
      ['seenAt != datetime(2022-01-01T00:00:00Z)', 'c'],
    ],
  ],
  [
    'a missing bool counts as false',
    [
      ['verified', 'a'],
      ['not verified', 'bcd'],
      ['verified = true', 'a'],
      ['verified != true', 'bcd'],
      ['verified = false', 'bcd'],
      ['verified != false', 'a'],
      ['verified = null', 'cd'],
      ['verified != null', 'ab'],
      ['isSystem', 'a'],
      ['not isSystem', 'bcd'],
      ['isSystem = false', 'bcd'],
    ],
  ],
  [
    'numbers of any size are compared, and between is half open',
    [
      ['rank = 5', 'a'],
      ['rank = 5.0', 'a'],
      ['rank > 4.5', 'acd'],
      ['rank != 5', 'bcd'],
      ['rank < 9223372036854775807', 'abcd'],
      ['rank < 1e308', 'abcd'],
      ['rank in [5, 12]', 'ad'],
      ['rank in [5, 12.0, 99999999999999999999]', 'ad'],
      ['rank not in [5]', 'bcd'],
      ['rank between 5 and 12', 'a'],
      ['rank between 5 and 12.5', 'ad'],
      ['rank not between 5 and 12', 'bcd'],
      ['rank between 12 and 5', ''],
      ['rank contains 2', 'cd'],
      ['rank contains "27"', 'c'],
      ['rank not contains 2', 'ab'],
      ['weight = 2.5', 'b'],
      ['weight > 1e299', 'c'],
      ['weight = null', 'a'],
    ],
  ],
  [
    'a text is compared with a number as text',
    [
      ['note = 12', 'd'],
      ['note = 12.0', 'd'],
      ['name = 1', ''],
      ['note in [1, 12]', 'd'],
      ['note < 2', 'cd'],
    ],
  ],
  [
    'times',
    [
      ['createdAt = datetime(2020-01-01T02:00:00+02:00)', 'a'],
      ['createdAt > datetime(2020-01-01T00:00:00Z)', 'bcd'],
      ['createdAt >= datetime(2021-06-15T12:00:00.123Z)', 'bcd'],
      ['createdAt between datetime(2020-01-01T00:00:00Z) and datetime(2023-01-01T00:00:00Z)', 'abc'],
      ['createdAt not between datetime(2020-01-01T00:00:00Z) and datetime(2023-01-01T00:00:00Z)', 'd'],
      ['createdAt in [datetime(2023-01-01T00:00:00Z), datetime(2020-01-01T00:00:00Z)]', 'ad'],
      ['createdAt > datetime(0000-01-01T00:00:00Z)', 'abcd'],
      ['createdAt < datetime(9999-12-31T23:59:59Z)', 'abcd'],
    ],
  ],
  [
    'sets',
    [
      ['anyOf(words) = "one"', 'ab'],
      ['anyOf(words) in ["two", "x"]', 'ad'],
      ['anyOf(words) = 5', 'd'],
      ['anyOf(words) != "one"', 'd'],
      ['anyOf(words) not in ["one"]', 'ad'],
      ['anyOf(words) > "p"', 'ad'],
      ['anyOf(words) < "p"', 'abd'],
      ['anyOf(words) <= 5', 'd'],
      ['anyOf(words) contains "ne"', 'ab'],
      ['anyOf(words) contains 5', 'd'],
      ['anyOf(words) not contains "o"', 'd'],
      ['anyOf(words) icontains "ZER"', 'd'],
      ['anyOf(words) = null', ''],
      ['anyOf(words) != null', 'abd'],
      ['allOf(words) = "one"', 'bc'],
      ['allOf(words) != "one"', 'cd'],
      ['allOf(words) in ["one", "two"]', 'abc'],
      ['allOf(words) not in ["two"]', 'bc'],
      ['allOf(words) >= "one"', 'abc'],
      ['allOf(words) < "u"', 'abc'],
      ['allOf(words) = null', 'c'],
      ['allOf(words) != null', 'abcd'],
      ['allOf(words) contains "o"', 'abc'],
      ['allOf(words) not icontains "TW"', 'bc'],
      ['not allOf(words) = "one"', 'ad'],
      ['isEmpty(words)', 'c'],
      ['not isEmpty(words)', 'abd'],
      ['count(words) = 0', 'c'],
      ['count(words) > 1', 'ad'],
      ['count(words) in [1, 3]', 'bd'],
      ['count(words) between 1 and 3', 'ab'],
      ['count(words) = null', ''],
      ['count(words) contains 2', 'a'],
    ],
  ],
  [
    'a tag has the type that it is compared with, and its numbers are floats',
    [
      ['tags.loc = "east"', 'a'],
      ['tags.loc != "east"', 'bd'],
      ['tags.loc = null', 'c'],
      ['tags.loc != null', 'abd'],
      ['tags.loc < "a"', 'd'],
      ['tags.loc in ["east", "west"]', 'ab'],
      ['tags.loc not in ["east"]', 'bd'],
      ['tags.loc contains "est"', 'b'],
      ['tags.loc not contains "est"', 'ad'],
      ['tags.loc icontains "EAST"', 'ad'],
      ['tags.gone = null', 'abcd'],
      ['tags.n = 5', ''],
      ['tags.n != 5', ''],
      ['tags.n < 100', ''],
      ['tags.n in [1, 5]', ''],
      ['tags.n between 0 and 10', ''],
      ['tags.n = 5.0', 'b'],
      ['tags.n != 5.0', 'ad'],
      ['tags.n < 1.5', 'ad'],
      ['tags.n in [1.0, 5.0]', 'ab'],
      ['tags.n between 0.0 and 5.0', 'a'],
      ['tags.n between 0 and 5.5', 'ab'],
      ['tags.n = "5"', 'b'],
      ['tags.n contains 5', 'b'],
      ['tags.half = 1.5', 'a'],
      ['tags.half = "1.5"', 'a'],
      ['tags.five = "5"', 'ab'],
      ['tags.five = 5.0', 'b'],
      ['tags.ok', 'a'],
      ['tags.ok = true', 'a'],
      ['tags.ok != true', 'bcd'],
      ['tags.ok = false', 'bcd'],
      ['tags.ok != false', 'a'],
      ['tags.ok = "true"', 'a'],
      ['tags.never = false', 'abcd'],
      ['tags.loc > datetime(2020-01-01T00:00:00Z)', ''],
      ['tags.a.b = null', 'abcd'],
    ],
  ],
  [
    'words bind to what follows, from right to left',
    [
      ['false and false or true', ''],
      ['not false and false', 'abcd'],
      ['name = "alpha" and not false and false', 'a'],
      ['(false and false) or name = "alpha"', 'a'],
      ['true or false and false', 'abcd'],
    ],
  ],
  [
    'order',
    [
      ['true', 'abcd'],
      ['sort by name', 'bacd'],
      ['sort by name desc', 'dcab'],
      ['sort by note', 'acdb'],
      ['sort by note desc', 'bdca'],
      ['sort by weight', 'adbc'],
      ['sort by verified, id desc', 'dcba'],
      ['sort by verified desc, name', 'abcd'],
      ['sort by seenAt desc', 'bcad'],
      ['sort by isSystem', 'bcda'],
      ['sort by shout', 'abcd'],
      ['sort by label', 'bacd'],
      ['sort by isSystem, isSystem, isSystem, isSystem, isSystem, name desc', 'bcda'],
    ],
  ],
]

describe.each(rules)('%s', (_rule, cases) => {
  test.each(cases)('%s', async (filter, found) => {
    expect(await things.find(filter)).toBe(found)
  })
})

test.each([
  ['nothing = 1', "unknown symbol 'nothing'"],
  ['NAME = "x"', "unknown symbol 'NAME'"],
  ['\'name\' = "x"', "unknown symbol ''name''"],
  ['name.first = "x"', "unknown symbol 'name.first'"],
  ['anyOf(nothing) = "x"', "unknown symbol 'nothing'"],
  ['anyOf(from words where true) = "x"', "unknown symbol 'words'"],
  ['isEmpty(from words where true)', "unknown symbol 'words'"],
  ['count(from words where true) = 1', "unknown symbol 'words'"],
  ['true sort by nothing', "unknown symbol 'nothing'"],
  ['true sort by words', "cannot sort by 'words'"],
  ['true sort by tags', "cannot sort by 'tags'"],
  ['true sort by tags.loc', "cannot sort by 'tags.loc'"],
  ['words = "x"', "symbol 'words' cannot be compared without a function"],
  ['words', "symbol 'words' cannot be compared without a function"],
  ['tags = "x"', "symbol 'tags' cannot be compared without a function"],
  ['anyOf(name) = "x"', "symbol 'name' is not a set symbol but is used in set function anyOf"],
  ['count(name) = 1', "symbol 'name' is not a set symbol but is used in set function count"],
  ['isEmpty(tags.loc)', "symbol 'tags.loc' is not a set symbol but is used in set function isEmpty"],
  ['isSystem = "x"', 'operation = is not supported with operands of types bool and string'],
  ['isSystem = 1', 'operation = is not supported with operands of types bool and number'],
  ['isSystem contains "t"', 'operation contains is not supported with operands of types bool and string'],
  ['name', 'operation = is not supported with operands of types string and bool'],
  ['name = true', 'operation = is not supported with operands of types string and bool'],
  [
    'name > datetime(2020-01-01T00:00:00Z)',
    'operation > is not supported with operands of types string and datetime',
  ],
  ['name between 1 and 2', 'operation between is not supported with operands of types string and number'],
  ['rank = "5"', 'operation = is not supported with operands of types number and string'],
  ['rank in ["5"]', 'operation in is not supported with operands of types number and string'],
  ['rank icontains "5"', 'operation icontains is not supported with operands of types number and string'],
  ['createdAt > "2020-01-01"', 'operation > is not supported with operands of types datetime and string'],
  [
    'createdAt between 1 and 2',
    'operation between is not supported with operands of types datetime and number',
  ],
  [
    'createdAt contains "2020"',
    'operation contains is not supported with operands of types datetime and string',
  ],
  ['anyOf(words) = true', 'operation = is not supported with operands of types string and bool'],
  [
    'anyOf(words) between 1 and 2',
    'operation between is not supported with operands of types string and number',
  ],
  ['count(words) = "1"', 'operation = is not supported with operands of types number and string'],
])('%s is refused', async (filter, detail) => {
  await expect(things.find(filter)).rejects.toMatchObject({ code: 'INVALID_FILTER', detail })
})

test('every filter that is not refused runs', async () => {
  const symbol = fc.constantFrom(
    ...[
      'id',
      'name',
      'note',
      'shout',
      'rank',
      'weight',
      'isSystem',
      'verified',
      'createdAt',
      'seenAt',
      'words',
    ],
    ...['tags', 'tags.loc', 'tags.n', 'tags.ok', 'tags.none'],
  )
  const key = fc.constantFrom('id', 'note', 'shout', 'rank', 'weight', 'verified', 'seenAt', 'words')
  const operand = fc.oneof(
    { weight: 3, arbitrary: symbol },
    fc.tuple(fc.constantFrom('anyOf', 'allOf', 'count'), symbol).map(([of, set]) => `${of}(${set})`),
  )
  const text = fc
    .uint16Array({ maxLength: 5 })
    .map((units) => `"${String.fromCharCode(...units).replace(/[\\"\0]/g, '\\$&')}"`)
  const number = fc.oneof(
    fc.constantFrom(
      '0',
      '-0',
      '0.0',
      '-9223372036854775808',
      '99999999999999999999',
      '1e308',
      '5e-324',
      '1E5',
    ),
    fc.integer().map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  )
  const time = fc.constantFrom(
    '0000-01-01T00:00:00+23:59',
    '9999-12-31T23:59:59-23:59',
    '2020-01-01T00:00:00Z',
  )
  const datetime = time.map((value) => `datetime(${value})`)
  const literal = fc.oneof(text, number, datetime)
  const list = fc.oneof(
    ...[text, number, datetime].map((one) => fc.array(one, { minLength: 1, maxLength: 3 })),
  )
  const comparison = fc.oneof(
    fc.tuple(
      operand,
      fc.constantFrom('=', '!=', '<', '<=', '>', '>=', 'contains', 'not contains', 'icontains'),
      literal,
    ),
    fc.tuple(operand, fc.constantFrom('=', '!='), fc.constantFrom('null', 'true', 'false')),
    fc.tuple(
      operand,
      fc.constantFrom('in', 'not in'),
      list.map((values) => `[${values.join()}]`),
    ),
    fc.tuple(
      operand,
      fc.constantFrom('between', 'not between'),
      fc.oneof(fc.tuple(number, number), fc.tuple(datetime, datetime)).map((ends) => ends.join(' and ')),
    ),
    fc.tuple(symbol),
    fc.tuple(symbol.map((set) => `isEmpty(${set})`)),
  )
  const { filter } = fc.letrec<{ filter: string }>((tie) => ({
    filter: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      comparison.map((parts) => parts.join(' ')),
      tie('filter').map((inner) => `not (${inner})`),
      fc.tuple(tie('filter'), fc.constantFrom('and', 'or'), tie('filter')).map((parts) => parts.join(' ')),
    ),
  }))
  let ran = 0
  await fc.assert(
    fc.asyncProperty(filter, fc.array(key, { maxLength: 3 }), async (where, sort) => {
      try {
        await things.find(sort.length > 0 ? `${where} sort by ${sort.join(' desc, ')}` : where)
        ran += 1
      } catch (err) {
        if (!(err instanceof FilterError || err instanceof Fault)) throw err
      }
    }),
    { numRuns: 1_000 },
  )
  expect(ran).toBeGreaterThan(50)
})

test('a filter of the greatest length runs', async () => {
  expect(await things.find(`${'tags.loc = "east" or '.repeat(999)}false`)).toBe('a')
  expect(await things.find(`rank in [${'1,'.repeat(32_000)}5]`)).toBe('a')
  const turns = `${'tags.n = 1.0 or not isSystem and '.repeat(60)}true`
  expect(parseQuery(turns, { sort: '', limit: '', offset: '' }).limit).toBe(10)
  expect(await things.find(turns)).toHaveLength(4)
})
