import { expect, test } from 'vitest'
import { hostName, textOf } from './alt-names.js'
import { contentOf } from './der.js'
import { nameTags } from './extension.js'

test.each(['api.example', '127.0.0.1', '::1', '::', 'fe80::1', '2001:db8::1:0:0:1', '1:2:3:4:5:6:7:8'])(
  'the host %s is read as it was written',
  (host) => {
    expect(textOf(hostName(host))).toBe(host)
  },
)

const bytesOf = (ip: string): string => contentOf(hostName(ip), nameTags.ip).toString('hex')

test('an address has its bytes', () => {
  expect(bytesOf('10.0.0.255')).toBe('0a0000ff')
  expect(bytesOf('2001:db8::ff')).toBe('20010db80000000000000000000000ff')
  expect(bytesOf('::ffff:10.0.0.1')).toBe('00000000000000000000ffff0a000001')
})
