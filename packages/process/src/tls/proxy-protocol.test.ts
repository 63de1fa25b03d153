import { expect, test } from 'vitest'
import { parseProxyHeader } from './proxy-protocol.js'

const signature = '\r\n\r\n\0\r\nQUIT\n'
const binary = (command: number, family: number, data: readonly number[]): Buffer =>
  Buffer.concat([
    Buffer.from(signature, 'latin1'),
    Buffer.from([0x20 | command, family, data.length >> 8, data.length & 255]),
    Buffer.from(data),
  ])
const v4 = [192, 0, 2, 1, 10, 0, 0, 1, 0x10, 0, 0x20, 0]
const v6 = [0x20, 1, 0xd, 0xb8, ...Array(11).fill(0), 7, ...Array(16).fill(0), 0x10, 0, 0x20, 0]

test.each([
  ['PROXY TCP4 192.0.2.1 10.0.0.1 4096 8192\r\n', '192.0.2.1'],
  ['PROXY TCP6 2001:db8:0::7 ::1 4096 8192\r\n', '2001:db8::7'],
  ['PROXY TCP6 ::ffff:192.0.2.1 ::1 4096 8192\r\n', '192.0.2.1'],
  ['PROXY UNKNOWN\r\n', undefined],
  ['PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n', undefined],
])('the text header %j names %s', (header, address) => {
  expect(parseProxyHeader(Buffer.from(`${header}rest`))).toEqual({ bytes: header.length, address })
})

test.each([
  ['IPv4', binary(1, 0x11, v4), '192.0.2.1'],
  ['IPv6', binary(1, 0x21, v6), '2001:db8::7'],
  ['IPv4 with further fields', binary(1, 0x11, [...v4, 4, 0, 1, 0]), '192.0.2.1'],
  ['a health check', binary(0, 0, []), undefined],
  ['a Unix socket', binary(1, 0x31, Array(216).fill(0)), undefined],
])('the binary header of %s names its client', (_what, header, address) => {
  const head = Buffer.concat([header, Buffer.from('rest')])
  expect(parseProxyHeader(head)).toEqual({ bytes: header.length, address })
})

test.each([Buffer.from('PROXY TCP4 192.0.2.1 10.0.0.1 4096 8192\r\n'), binary(1, 0x21, v6)])(
  'a part of a header is waited for',
  (header) => {
    for (let length = 0; length < header.length; length++)
      expect(parseProxyHeader(header.subarray(0, length))).toBe('partial')
  },
)

test.each([
  ['a name in place of an address', 'PROXY TCP4 localhost 10.0.0.1 1 2\r\n'],
  ['an address of another family', 'PROXY TCP4 ::1 10.0.0.1 1 2\r\n'],
  ['an unknown family', 'PROXY UDP4 192.0.2.1 10.0.0.1 1 2\r\n'],
  ['missing ports', 'PROXY TCP4 192.0.2.1 10.0.0.1\r\n'],
  ['no end', `PROXY TCP4 ${'1'.repeat(200)}`],
])('a text header with %s is refused', (_what, header) => {
  expect(() => parseProxyHeader(Buffer.from(header))).toThrow()
})

test.each([
  [
    'another version',
    Buffer.concat([Buffer.from(signature, 'latin1'), Buffer.from([0x31, 0x11, 0, 12, ...v4])]),
  ],
  ['an unknown command', binary(2, 0x11, v4)],
  ['too few bytes for its addresses', binary(1, 0x11, v4.slice(0, 8))],
  ['too many bytes', binary(1, 0x11, Array(2000).fill(0))],
])('a binary header with %s is refused', (_what, header) => {
  expect(() => parseProxyHeader(header)).toThrow()
})

test('a TLS handshake is no header', () => {
  expect(parseProxyHeader(Buffer.from([0x16, 3, 1]))).toBeUndefined()
})
