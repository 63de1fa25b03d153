import { expect, test } from 'vitest'
import { openList } from './linked-list.js'

test('items stay in order while others leave', () => {
  const list = openList<string>()
  const [a, b, c] = ['a', 'b', 'c'].map(list.add) as [never, never, never]
  expect(list.remove(b)).toBe(true)
  expect(list.items()).toEqual(['a', 'c'])
  list.add('d')
  expect(list.remove(a)).toBe(true)
  expect([list.first(), list.items()]).toEqual(['c', ['c', 'd']])
  expect(list.remove(c)).toBe(true)
  expect([list.takeFirst(), list.takeFirst(), list.isEmpty()]).toEqual(['d', undefined, true])
})

test('a place is removed once', () => {
  const list = openList<string>()
  const taken = list.add('a')
  list.add('b')
  expect(list.takeFirst()).toBe('a')
  expect(list.remove(taken)).toBe(false)
  expect(list.items()).toEqual(['b'])
})

test('what has left points to nothing', () => {
  const list = openList<object>()
  const [one, other] = [list.add({}), list.add({})]
  list.remove(one)
  expect([one.item, one.before, one.after]).toEqual([undefined, one, one])
  expect(list.items()).toEqual([other.item])
})
