import { expect, test } from 'vitest'
import {
  contentOf,
  DerError,
  derOf,
  encode,
  objectId,
  objectIdIn,
  onlyElement,
  sequence,
  tag,
  time,
} from './der.js'

const der = (hex: string): Buffer => Buffer.from(hex, 'hex')

function nested(depth: number): string {
  let hex = '0500'
  for (let left = depth; left > 0; left--) {
    const length = hex.length / 2
    const digits = length.toString(16).padStart(4, '0')
    hex = `30${length < 0x80 ? digits.slice(2) : length < 0x100 ? `81${digits.slice(2)}` : `82${digits}`}${hex}`
  }
  return hex
}

test.each([0, 127, 128, 255, 256, 300, 32_764])('an element of %d bytes is read back', (length) => {
  const content = Buffer.alloc(length, 7)
  const element = encode(tag.octetString, content)
  expect(contentOf(onlyElement(derOf(element)), tag.octetString)).toEqual(content)
})

test.each([
  ['nothing behind the tag', '30'],
  ['a length that is cut off', '3082 01'],
  ['content that is cut off', '3003 0500'],
  ['an indefinite length', '3080 0000'],
  ['a long form where the short one does', '30810105'],
  ['a long form with a leading zero', `30820080${'00'.repeat(128)}`],
  ['a length of four bytes', `308400000001 00`],
  ['a tag of two bytes', '1f2200'],
])('%s is no element', (_what, hex) => {
  expect(() => onlyElement(der(hex.replaceAll(' ', '')))).toThrow(DerError)
})

test.each([
  ['an element behind it', '0500 0500'],
  ['an integer with a leading zero', '3004 0202 0001'],
  ['half a character of two bytes', '3005 1e03 000061'],
  ['more bytes than a certificate needs', `0483008000${'00'.repeat(32_768)}`],
  ['deep nesting', nested(33)],
  ['nesting that would overflow the stack', nested(8_000)],
])('an element with %s is refused', (_what, hex) => {
  expect(() => onlyElement(der(hex.replaceAll(' ', '')))).toThrow(DerError)
})

test('any number of elements is read in linear time, however they are nested', () => {
  const inner = `3082${(30_000).toString(16).padStart(4, '0')}${'0500'.repeat(15_000)}`
  let element = der(inner)
  for (let depth = 0; depth < 29; depth++) element = derOf(sequence(element))
  expect(derOf(onlyElement(element))).toEqual(element)
})

test.each(['2.5.4.3', '1.2.840.113549.1.1.11', '1.3.101.112', '2.16.840.1.101.3.4.2.1', '2.999.3'])(
  'the object id %s is read back',
  (dotted) => {
    expect(objectIdIn(onlyElement(derOf(objectId(dotted))))).toBe(dotted)
  },
)

test.each([
  ['that is empty', '0600'],
  ['with a leading zero', '0604 80550403'],
  ['that is cut off', '0603 550481'],
])('an object id %s is refused', (_what, hex) => {
  expect(() => objectIdIn(onlyElement(der(hex.replaceAll(' ', ''))))).toThrow(DerError)
})

test('a time has two digits of the year until 2049', () => {
  const textOf = (at: string): string =>
    derOf(time(new Date(at)))
      .subarray(2)
      .toString()
  expect(textOf('2026-02-03T04:05:06.789Z')).toBe('260203040506Z')
  expect(textOf('2049-12-31T23:59:59Z')).toBe('491231235959Z')
  expect(textOf('2050-01-01T00:00:00Z')).toBe('20500101000000Z')
})
