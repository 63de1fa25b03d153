import { expect, test } from 'vitest'
import { plainAddress, sourceOf } from './source-address.js'

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:c000:201', '192.0.2.1'],
  ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
  ['fe80::1%eth0', 'fe80::1'],
])('%s is the address %s', (address, plain) => {
  expect(plainAddress(address)).toBe(plain)
})

test('text that is no address is refused', () => {
  expect(() => plainAddress('localhost')).toThrow()
  expect(() => plainAddress('')).toThrow()
})

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:db8:0:0:5:6:7:8', '2001:db8:0:0::/64'],
  ['2001:db8:1:2::', '2001:db8:1:2::/64'],
  ['::1', '0:0:0:0::/64'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
])('%s counts as %s', (address, source) => {
  expect(sourceOf(address)).toBe(source)
})
