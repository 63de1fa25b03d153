import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { networkOfFile, newName } from './network.js'

const { policy } = await networkOfFile()

const type = (schema: object) => policy.create('config-types', { name: newName(), schema })
const config = (configTypeId: string, data: object) =>
  policy.create('configs', { name: newName(), configTypeId, data })

test('data that does not fit a schema that calls itself asynchronous is refused like any other', async () => {
  const id = await type({ $async: true, type: 'object', required: ['x'] })
  await expect(config(id, { y: 1 })).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: '(root)', reason: '(root) is invalid: (root): x is required' },
  })
})

test.each([
  ['look-ahead', { pattern: '(?=a)b' }],
  ['a back reference', { pattern: '(a)\\1' }],
  ['a reference to another document', { $ref: 'http://nowhere.example/x' }],
  ['more than it may have', { enum: Array.from({ length: 3000 }, (_, n) => n) }],
])('a config type whose schema has %s is refused', async (_what, part) => {
  await expect(type({ type: 'object', properties: { a: part } })).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'schema', reason: expect.stringMatching(/^invalid schema /) },
  })
})

test('a config of a type that was stored with such a schema is refused, and the type can be repaired', async () => {
  const id = await type({ type: 'object' })
  const { db } = policy.changeLog
  await db.query(sql`
    update config_type set schema = '{"type": "object", "properties": {"a": {"pattern": "(?=a)b"}}}' where id = ${id}`)
  await expect(config(id, { a: 'b' })).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'type' },
  })
  await policy.update('config-types', id, { schema: { type: 'object' } })
  expect(await config(id, { a: 'b' })).toEqual(expect.any(String))
})

test('large documents of the built-in types are checked', async () => {
  const action = { trigger: 'fail', duration: '5s', action: 'mark unhealthy' }
  const check = { address: 'localhost:80', interval: '5s', timeout: '5s', actions: [action] }
  const terminator = { protocol: 'tcp', address: 'localhost', port: 80, portChecks: Array(10).fill(check) }
  const ranges = Array.from({ length: 3000 }, (_, n) => ({ low: n + 1, high: n + 1 }))
  const addresses = Array.from({ length: 3000 }, (_, n) => `host-${n}.example.org`)
  expect(await config('host.v2', { terminators: Array(100).fill(terminator) })).toEqual(expect.any(String))
  expect(await config('g7cIWbcGg', { protocols: ['tcp'], addresses, portRanges: ranges })).toEqual(
    expect.any(String),
  )
})
