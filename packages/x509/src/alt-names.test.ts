import { expect, test } from 'vitest'
import { hostName, textOf } from './alt-names.js'

test.each(['api.example', '127.0.0.1', '::1', '::', 'fe80::1', '2001:db8::1:0:0:1', '1:2:3:4:5:6:7:8'])(
  'the host %s is read as it was written',
  (host) => {
    expect(textOf(hostName(host))).toBe(host)
  },
)

test('an address has its bytes', () => {
  expect(hostName('10.0.0.255').content.toString('hex')).toBe('0a0000ff')
  expect(hostName('2001:db8::ff').content.toString('hex')).toBe('20010db80000000000000000000000ff')
  expect(hostName('::ffff:10.0.0.1').content.toString('hex')).toBe('00000000000000000000ffff0a000001')
})
