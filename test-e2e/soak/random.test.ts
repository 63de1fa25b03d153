import { expect, test } from 'vitest'
import { dealer, randomOf } from './random.js'

test('every element is dealt once before any comes again', () => {
  const deal = dealer(randomOf(1, 'test'), () => ['a', 'b', 'c'])
  for (const _ of [1, 2, 3]) expect([deal(), deal(), deal()].sort()).toEqual(['a', 'b', 'c'])
})

test('nothing is dealt of an empty list', () => {
  const deal = dealer(randomOf(1, 'test'), () => [])
  expect(deal()).toBeUndefined()
})
