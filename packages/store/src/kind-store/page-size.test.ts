import { expect, test } from 'vitest'
import { fittingRows } from './page-size.js'

const read = ({ rows, count }: ReturnType<typeof fittingRows>) => [JSON.parse(rows.toString()), count]

test('a page has as many rows as fit, and at least one', () => {
  const rows = ['"aaaa"', '"bbbb"', '"cccc"'].map((json) => Buffer.from(json))
  expect(read(fittingRows(rows, 100))).toEqual([['aaaa', 'bbbb', 'cccc'], 3])
  expect(read(fittingRows(rows, 15))).toEqual([['aaaa', 'bbbb'], 2])
  expect(read(fittingRows(rows, 3))).toEqual([['aaaa'], 1])
  expect(read(fittingRows([], 1))).toEqual([[], 0])
})
