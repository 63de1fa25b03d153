import { expect, test } from 'vitest'
import { newConnectionId, shownControllerId } from './connection-id.js'

test('a router that connects again meets the controller id of its first connection', () => {
  const first = newConnectionId(shownControllerId('', 'a'))
  const second = newConnectionId(shownControllerId(first, 'b'))
  expect(shownControllerId(second, 'c')).toBe('a')
  expect(shownControllerId(`${first}-12`, 'c')).toBe('a') // a try of a grouped connection
})

test.each([
  '',
  '1a2b',
  '/',
  'a/b',
  `a b/${'0'.repeat(36)}`,
  `${'x'.repeat(201)}/${'0'.repeat(36)}`,
  `a/${'0'.repeat(36)}-x`,
])('a connection id %j of another controller is not taken', (former) => {
  expect(shownControllerId(former, 'b')).toBe('b')
})
