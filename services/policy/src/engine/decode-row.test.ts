import { expect, test } from 'vitest'
import { decodeRow } from './decode-row.js'

const change = (json: string) => ({ kind: 'configs', id: 'c1', json: Buffer.from(json), atMs: 0, number: 1 })

test('a revision depends on the content of a row, not on the order of its members', () => {
  const [first, second, other] = [
    '{"configTypeId":"t1","data":{"a":1,"b":[{"c":2,"d":3}]}}',
    '{"data": {"b": [{"d": 3, "c": 2}], "a": 1}, "configTypeId": "t1"}',
    '{"data":{"b":[{"d":3,"c":2}],"a":2},"configTypeId":"t1"}',
  ].map((json) => decodeRow('configs', change(json))?.row.revision)
  expect(second).toBe(first)
  expect(other).not.toBe(first)
})

test('a transit router carries no services', () => {
  expect(decodeRow('edge-routers', change('{"name":"t","isEdge":false,"roleAttributes":null}'))).toBeNull()
})
