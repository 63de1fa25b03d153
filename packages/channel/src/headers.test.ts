import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  decodeBool,
  decodeBytesMap,
  decodeInt32,
  decodeText,
  decodeTextList,
  decodeTextMap,
  decodeUint32,
  decodeVersion,
  encodeBits,
  encodeBool,
  encodeBytesMap,
  encodeInt32,
  encodeText,
  encodeTextList,
  encodeTextMap,
  encodeUint32,
  encodeUint64,
  encodeVersion,
  hasBit,
  MalformedHeader,
} from './index.js'

const text = fc.string({ unit: 'binary' }) // any code points
const part = fc.string().map((value) => value.replaceAll('|', ''))
const uint32 = fc.nat(2 ** 32 - 1)
const bytes = fc.uint8Array({ maxLength: 100 }).map((array) => Buffer.from(array))
const map = <K, V>(key: fc.Arbitrary<K>, value: fc.Arbitrary<V>) =>
  fc.array(fc.tuple(key, value), { maxLength: 20 }).map((entries) => new Map(entries))

const codec = <T>(
  name: string,
  values: fc.Arbitrary<T>,
  encode: (value: T) => Buffer,
  decode: (bytes: Buffer) => T,
) => ({
  name,
  check() {
    const property = fc.property(values, (value) => {
      expect(decode(encode(value))).toEqual(value)
    })
    fc.assert(property, { seed: 42 })
  },
})

test.each([
  codec('text', text, encodeText, decodeText),
  codec('a boolean', fc.boolean(), encodeBool, decodeBool),
  codec('an int32', fc.integer(), encodeInt32, decodeInt32),
  codec('a uint32', uint32, encodeUint32, decodeUint32),
  codec('a uint64', fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), encodeUint64, (bytes) =>
    bytes.readBigUInt64LE(),
  ),
  codec('a list of texts', fc.array(text, { maxLength: 128 }), encodeTextList, decodeTextList),
  codec('a map of bytes', map(uint32, bytes), encodeBytesMap, decodeBytesMap),
  codec('a map of texts', map(text, text), encodeTextMap, decodeTextMap),
  codec(
    'a version',
    fc.record({ version: part, revision: part, buildDate: part, os: part, arch: part }),
    encodeVersion,
    decodeVersion,
  ),
])('$name round-trips', ({ check }) => check())

const strings = (count: number, size = 1): string[] =>
  Array.from({ length: count }, (_, index) => String(index).padEnd(size, 'x'))

test.each([
  ['a number of the wrong size', () => decodeUint32(Buffer.alloc(3))],
  ['text that is not UTF-8', () => decodeText(Buffer.from([0xff]))],
  ['text in a list that is not UTF-8', () => decodeTextList(Buffer.from([1, 0, 0, 0, 1, 0, 0, 0, 0xff]))],
  ['an empty list without a count', () => decodeTextList(Buffer.alloc(0))],
  ['a list of 129 entries', () => decodeTextList(encodeUint32(129))],
  ['a list that ends early', () => decodeTextList(encodeTextList(['a', 'b']).subarray(0, -1))],
  [
    'a list with bytes after its end',
    () => decodeTextList(Buffer.concat([encodeTextList(['a']), Buffer.alloc(1)])),
  ],
  ['an entry of 8193 bytes', () => decodeTextList(Buffer.from([1, 0, 0, 0, 1, 0x20, 0, 0]))],
  ['129 entries to encode', () => encodeTextList(strings(129))],
  ['an entry of 8193 bytes to encode', () => encodeTextList(strings(1, 8193))],
  ['a map of 129 entries to encode', () => encodeTextMap(new Map(strings(129).map((s) => [s, s])))],
  ['a version of four parts', () => decodeVersion(encodeText('a|b|c|d'))],
  ['a version of six parts', () => decodeVersion(encodeText('a|b|c|d|e|f'))],
])('%s is malformed', (_, run) => {
  expect(run).toThrow(MalformedHeader)
})

test('masks of bits are big-endian, of any length', () => {
  expect(encodeBits([1, 2, 3]).toString('hex')).toBe('0e')
  expect(encodeBits([1, 2, 4, 5, 6, 62]).toString('hex')).toBe('4000000000000076')
  const bits = fc.uniqueArray(fc.nat(200), { minLength: 1 })
  fc.assert(
    fc.property(bits, fc.nat(8), (set, zeros) => {
      const mask = Buffer.concat([Buffer.alloc(zeros), encodeBits(set)])
      const found = Array.from({ length: 300 }, (_, bit) => bit).filter((bit) => hasBit(mask, bit))
      expect(found).toEqual(set.toSorted((a, b) => a - b))
    }),
  )
  expect(hasBit(Buffer.alloc(0), 1)).toBe(false)
})
