import { BlockList } from 'node:net'
import { expect, test } from 'vitest'
import { isAllowedAddress } from './public-address.js'

test.each(['1.1.1.1', '8.8.8.8', '172.32.0.1', '2606:4700::1111'])('%s is public', (address) => {
  expect(isAllowedAddress(address, undefined)).toBe(true)
})

test.each([
  '0.0.0.0',
  '10.1.2.3',
  '100.64.0.1',
  '127.0.0.1',
  '169.254.169.254',
  '172.31.255.255',
  '192.168.1.1',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:8.8.8.8',
  '64:ff9b::7f00:1',
  'fe80::1',
  'fd00::1',
  '2001:db8::1',
  '2002:7f00:1::',
  'ff02::1',
  'localhost',
])('%s is not', (address) => {
  expect(isAllowedAddress(address, undefined)).toBe(false)
})

test('networks of the settings are allowed besides', () => {
  const allowed = new BlockList()
  allowed.addSubnet('10.1.0.0', 16, 'ipv4')
  expect(isAllowedAddress('10.1.2.3', allowed)).toBe(true)
  expect(isAllowedAddress('10.2.2.3', allowed)).toBe(false)
})
