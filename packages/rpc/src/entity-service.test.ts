import { expect, test } from 'vitest'
import { decodeListResponse, encodeListResponse } from './entity-service.js'
import { ListResponse } from './gen/overlay/entity/v1/entity.js'

const rows = Buffer.from(JSON.stringify(['a', 'ü', 'x'.repeat(100_000)]))

test.each([
  ['an empty page', ListResponse.create()],
  ['rows', ListResponse.create({ rows })],
  [
    'all members',
    ListResponse.create({
      rows,
      total: 2 ** 40,
      limit: '9223372036854775807',
      offset: 50,
      next: Buffer.from('next'),
      contentKey: 'key',
    }),
  ],
])('%s: generated code reads what is written, and the reverse', (_, page) => {
  expect(ListResponse.decode(encodeListResponse(page))).toEqual(page)
  expect(decodeListResponse(Buffer.from(ListResponse.encode(page).finish()))).toEqual(page)
  expect(decodeListResponse(encodeListResponse(page))).toEqual(page)
})

test.each(['0aff01', '1080'])('malformed bytes are refused: %s', (hex) => {
  expect(() => decodeListResponse(Buffer.from(hex, 'hex'))).toThrow()
})

test('the rows are a part of the message', () => {
  const bytes = encodeListResponse(ListResponse.create({ rows, total: 3 }))
  expect(decodeListResponse(bytes).rows.buffer).toBe(bytes.buffer)
})
