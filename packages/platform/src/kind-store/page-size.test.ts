import { expect, test } from 'vitest'
import { fitting } from './page-size.js'

const read = ({ rows, count }: ReturnType<typeof fitting>) => [JSON.parse(rows.toString()), count]

test('a page has as many rows as fit, and at least one', () => {
  const rows = ['aaaa', 'bbbb', 'cccc']
  expect(read(fitting(rows, 100))).toEqual([rows, 3])
  expect(read(fitting(rows, 15))).toEqual([['aaaa', 'bbbb'], 2])
  expect(read(fitting(rows, 3))).toEqual([['aaaa'], 1])
  expect(read(fitting([], 1))).toEqual([[], 0])
})
