import { expect, test } from 'vitest'
import { compileSchema } from './config-schema.js'

const port = { type: 'object', required: ['port'], properties: { port: { type: 'integer', minimum: 1 } } }

test('data that fits has no misfit', () => {
  expect(compileSchema(port)({ port: 80 })).toBeUndefined()
})

test.each([
  ['a missing member is named at the root', {}, '(root)', 'port is required', {}],
  ['a bad member is named by its path', { port: 0 }, 'port', 'Must be greater than or equal to 1', 0],
  ['a wrong type names both', { port: 'x' }, 'port', 'Invalid type. Expected: integer, given: string', 'x'],
  [
    'data that is null is of the wrong type',
    null,
    '(root)',
    'Invalid type. Expected: object, given: null',
    null,
  ],
] as const)('%s', (_rule, data, field, message, value) => {
  const reason = `${field} is invalid: ${field}: ${message}`
  expect(compileSchema(port)(data)).toEqual({ field, reason, value })
})

test('a schema of draft 4 means what it says', () => {
  const check = compileSchema({
    $schema: 'http://json-schema.org/draft-04/schema#',
    id: 'http://nowhere.example/thing.json',
    type: 'object',
    definitions: { id: { type: 'integer', minimum: 1, exclusiveMinimum: true } },
    properties: {
      id: { $ref: '#/definitions/id' },
      list: { items: [{ maximum: 2, exclusiveMaximum: false }] },
    },
  })
  expect(check({ id: 2, list: [2] })).toBeUndefined()
  expect(check({ id: 1 })?.field).toBe('id')
  expect(check({ list: [3] })?.field).toBe('list.0')
})

test('formats are not checked: a host name may be a pattern or a block', () => {
  const check = compileSchema({ type: 'string', format: 'idn-hostname' })
  expect([check('*.example.org'), check('10.0.0.0/8')]).toEqual([undefined, undefined])
})

test.each([
  ['a type that does not exist', { type: 'nonsense' }],
  ['a reference to what it does not have', { $ref: '#/definitions/no' }],
  ['a reference to another document', { $ref: 'http://nowhere.example/other.json' }],
])('no schema: %s', (_why, schema) => {
  expect(() => compileSchema(schema)).toThrow()
})

test('a schema that says it is asynchronous is checked at once, like any other', () => {
  expect(compileSchema({ $async: true, type: 'object', required: ['x'] })({})?.field).toBe('(root)')
})

test('keywords that the drafts do not have are ignored, and so are ids below the root', () => {
  const check = compileSchema({
    $id: 'http://nowhere.example/root',
    type: 'object',
    nullable: true,
    'x-form': { $ref: 'http://nowhere.example/other' },
    definitions: { name: { $id: 'http://nowhere.example/name', type: 'string' } },
    properties: { name: { $ref: 'http://nowhere.example/root#/definitions/name' } },
  })
  expect([check({ name: 'a' })?.field, check({ name: 1 })?.field, check(null)?.field]).toEqual([
    undefined,
    'name',
    '(root)',
  ])
})

const withPattern = (pattern: string) => compileSchema({ type: 'string', pattern })

test.each([
  ['[0-9]+(h|m|s|ms)', 'in 5s time', 'soon'],
  ['^\\/[\\w\\-.]+\\/$', '/a-b.c/', '/a b/'],
  ['^\\u0041\\d{2}$', 'A12', 'a12'],
  ['^(?P<name>a+)$', 'aaa', 'b'],
])('a pattern matches anywhere: %s', (pattern, good, bad) => {
  const check = withPattern(pattern)
  expect(check(good)).toBeUndefined()
  expect(check(bad)).toMatchObject({ field: '(root)' })
})

test.each([
  ['look-ahead', '(?=a)b'],
  ['look-behind', '(?<!a)b'],
  ['a back reference', '(a)\\1'],
  ['an open group', '(('],
  ['many characters', 'a'.repeat(1001)],
  ['many repetitions', '(?:a{900}b){2}'],
])(
  'a pattern with %s makes no schema: what cannot be matched in linear time, or is large',
  (_what, pattern) => {
    expect(() => withPattern(pattern)).toThrow()
    expect(() => compileSchema({ patternProperties: { [pattern]: { type: 'string' } } })).toThrow()
  },
)

test('patterns take time that grows with the text, and not without end', () => {
  const check = withPattern('^(a+)+$')
  expect(check(`${'a'.repeat(100_000)}!`)?.reason).toContain('Does not match pattern')
  expect(withPattern('^(?:x?){200}y$')('x'.repeat(250_000))?.reason).toContain('too large')
})

test('a dependency on members is a condition on each of them, and counts as many words', () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`)
  const check = compileSchema({ dependencies: { a: names(1900), b: { required: ['c'] } } })
  expect(check({ n0: 1 })).toBeUndefined()
  expect(check({ a: 1 })?.reason).toContain('n0 is required')
  expect(check({ b: 1 })?.reason).toContain('c is required')
  expect(() => compileSchema({ dependencies: { a: names(2000) } })).toThrow('words')
})

test('a set has each value once, however its members are ordered', () => {
  const check = compileSchema({ type: 'array', uniqueItems: true })
  expect(check([1, '1', { a: 1, b: 2 }, { a: 1 }, [1], null])).toBeUndefined()
  expect(
    check([
      { a: 1, b: { c: 1, d: 2 } },
      { b: { d: 2, c: 1 }, a: 1 },
    ])?.reason,
  ).toBe('(root) is invalid: (root): array items must be unique')
  expect(check(Array.from({ length: 20_000 }, (_, n) => ({ n })))).toBeUndefined()
})

const nested = (depth: number): object => (depth === 0 ? {} : { x: nested(depth - 1) })
const many = <T>(count: number, one: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => one(n))

test('a schema may refer to itself, and is given up when that does not end', () => {
  const tree = compileSchema({
    type: 'object',
    properties: { x: { anyOf: [{ type: 'number' }, { $ref: '#' }] } },
  })
  expect(tree(nested(150))).toBeUndefined()
  expect(tree({ x: { x: 'text' } })?.field).toBe('x')
  const twice = compileSchema({ properties: { x: { allOf: [{ $ref: '#' }, { $ref: '#' }] } } })
  const forever = compileSchema({ type: 'object', allOf: [{ $ref: '#' }] })
  for (const check of [twice, forever]) expect(check(nested(150))?.reason).toContain('too large')
})

test('alternatives within alternatives are given up when there are too many', () => {
  const doubled = (n: number) => [{ $ref: `#/definitions/d${n}` }, { $ref: `#/definitions/d${n}` }]
  const definitions = Object.fromEntries(
    many(40, (n) => [`d${n + 1}`, { anyOf: doubled(n) }] as [string, object]),
  )
  const check = compileSchema({
    definitions: { ...definitions, d0: { minimum: 5 } },
    $ref: '#/definitions/d40',
  })
  expect(check(1)?.reason).toContain('too large')
})

test('many alternatives are tried for some values, and not for any number', () => {
  const check = compileSchema({ items: { anyOf: many(300, (n) => ({ minimum: n + 10 })) } })
  expect(check(many(1000, () => 400))).toBeUndefined()
  expect(check(many(10_000, () => 400))?.reason).toContain('too large')
})

test.each([
  ['members', { properties: Object.fromEntries(many(1000, (n) => [`p${n}`, { type: 'string' }])) }],
  ['words', { required: many(2500, (n) => `p${n}`) }],
  ['bytes', { properties: { a: { const: 'x'.repeat(70_000) } } }],
  ['patterns', { allOf: many(30, (n) => ({ pattern: `^a{500}${n}$` })) }],
])('a schema with too many %s is none', (_what, schema) => {
  expect(() => compileSchema(schema)).toThrow(/more than|too large/)
})
