import { expect, test } from 'vitest'
import { openLosses } from './losses.js'

test('a write may be lost if any part of it is between the last change of the standby and the failover', () => {
  const losses = openLosses()
  const before = losses.watch()
  expect(before()).toBe(false)
  const answeredWithin = losses.watch()
  losses.begin()
  expect(answeredWithin()).toBe(true)
  const within = losses.watch()
  losses.end()
  expect(within()).toBe(true)
  expect(before()).toBe(true)
  expect(losses.watch()()).toBe(false)
  expect(losses.count()).toBe(1)
})
