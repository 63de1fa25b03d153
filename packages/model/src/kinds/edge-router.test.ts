import { expect, test } from 'vitest'
import { routersForClients } from './edge-router.js'

test('a client gets 25 routers at most, connected ones first, and null instead of none', () => {
  const routers = Array.from({ length: 30 }, (_, number) => ({ number, isOnline: number >= 28 }))
  const numbers = routersForClients(routers)?.map(({ number }) => number)
  expect(numbers).toEqual([28, 29, ...Array.from({ length: 23 }, (_, number) => number)])
  expect(routersForClients([])).toBeNull()
})
