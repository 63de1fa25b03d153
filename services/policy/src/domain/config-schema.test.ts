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
