import { expect, test } from 'vitest'
import { DerError, elementsIn, encode, objectId, objectIdIn, onlyElement, tag, time } from './der.js'

const der = (hex: string): Buffer => Buffer.from(hex, 'hex')

test.each([0, 127, 128, 255, 256, 300, 65_536])('an element of %d bytes is read back', (length) => {
  const content = Buffer.alloc(length, 7)
  const whole = encode(tag.octetString, content)
  expect(onlyElement(whole)).toEqual({ tag: tag.octetString, content, whole })
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
  expect(() => elementsIn(der(hex.replaceAll(' ', '')))).toThrow(DerError)
})

test.each(['2.5.4.3', '1.2.840.113549.1.1.11', '1.3.101.112', '2.16.840.1.101.3.4.2.1', '2.999.3'])(
  'the object id %s is read back',
  (dotted) => {
    expect(objectIdIn(onlyElement(objectId(dotted)))).toBe(dotted)
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
  const textOf = (at: string): string => onlyElement(time(new Date(at))).content.toString()
  expect(textOf('2026-02-03T04:05:06.789Z')).toBe('260203040506Z')
  expect(textOf('2049-12-31T23:59:59Z')).toBe('491231235959Z')
  expect(textOf('2050-01-01T00:00:00Z')).toBe('20500101000000Z')
})
