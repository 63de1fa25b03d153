/** One element of DER. */
export interface Element {
  readonly tag: number
  readonly content: Buffer
  /** Together with its tag and length. */
  readonly whole: Buffer
}

/** The bytes are not valid DER, or not the expected structure. */
export class DerError extends Error {
  override readonly name = 'DerError'
}

export const tag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  objectId: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  teletexString: 0x14,
  utcTime: 0x17,
  generalizedTime: 0x18,
  universalString: 0x1c,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const

/** Reads consecutive elements. Accepts only the canonical encoding of each. */
export function elementsIn(bytes: Buffer): readonly Element[] {
  const elements: Element[] = []
  for (let at = 0; at < bytes.length; ) {
    const element = elementAt(bytes.subarray(at))
    elements.push(element)
    at += element.whole.length
  }
  return elements
}

function elementAt(bytes: Buffer): Element {
  const [tag = 0, first = 0x80] = bytes
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f
  const start = 2 + lengthBytes
  if ((tag & 0x1f) === 0x1f || first === 0x80 || lengthBytes > 3 || bytes.length < start)
    throw new DerError('no element')
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(2, lengthBytes)
  if (lengthBytes > 0 && (length < 0x80 || length < 2 ** (8 * (lengthBytes - 1))))
    throw new DerError('length in long form')
  if (bytes.length < start + length) throw new DerError('element is cut off')
  return { tag, content: bytes.subarray(start, start + length), whole: bytes.subarray(0, start + length) }
}

/** Reads bytes that are exactly one element. */
export function onlyElement(bytes: Buffer): Element {
  const [element, ...more] = elementsIn(bytes)
  if (!element || more.length > 0) throw new DerError('not one element')
  return element
}

/** The content of an element, which must have this tag. */
export function contentOf(element: Element | undefined, expected: number): Buffer {
  if (element?.tag !== expected) throw new DerError(`tag ${element?.tag}, not ${expected}`)
  return element.content
}

export const partsOf = (element: Element | undefined, expected: number = tag.sequence): readonly Element[] =>
  elementsIn(contentOf(element, expected))

/** An object identifier in dotted form. */
export function objectIdIn(element: Element | undefined): string {
  const bytes = contentOf(element, tag.objectId)
  const arcs: number[] = []
  let arc = 0
  let isNew = true
  for (const byte of bytes) {
    if (isNew && byte === 0x80) throw new DerError('object id with a leading zero')
    arc = arc * 128 + (byte & 0x7f)
    isNew = byte < 0x80
    if (!isNew) continue
    arcs.push(arc)
    arc = 0
  }
  const [first, ...rest] = arcs
  if (first === undefined || !isNew) throw new DerError('object id is cut off')
  const root = Math.min(2, Math.floor(first / 40))
  return [root, first - 40 * root, ...rest].join('.')
}

/** The text of a character string of any encoding. */
export function stringIn({ tag: kind, content }: Element): string {
  if (kind === tag.universalString) throw new DerError('a string of four bytes a character')
  if (kind === tag.teletexString) return content.toString('latin1')
  if (kind !== tag.bmpString) return content.toString()
  if (content.length % 2 !== 0) throw new DerError('half a character')
  return Buffer.from(content).swap16().toString('utf16le')
}

/** The bytes of a BIT STRING without unused bits. */
export function bytesOfBits(element: Element | undefined): Buffer {
  const content = contentOf(element, tag.bitString)
  if (content[0] !== 0) throw new DerError('bits are no bytes')
  return content.subarray(1)
}

export function encode(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return Buffer.concat([Buffer.from([tag, ...encodeLength(length)]), ...parts])
}

function encodeLength(length: number): number[] {
  if (length < 0x80) return [length]
  const bytes: number[] = []
  for (let left = length; left > 0; left >>>= 8) bytes.unshift(left & 0xff)
  return [0x80 | bytes.length, ...bytes]
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer => encode(tag.sequence, ...parts)

export const text = (of: string, tag: number): Buffer => encode(tag, Buffer.from(of))

export const bits = (bytes: Uint8Array, unused = 0): Buffer =>
  encode(tag.bitString, Buffer.from([unused]), bytes)

export function objectId(dotted: string): Buffer {
  const [root = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return encode(tag.objectId, Buffer.from([40 * root + second, ...rest].flatMap(arcBytes)))
}

function arcBytes(arc: number): number[] {
  const bytes = [arc & 0x7f]
  for (let left = arc >>> 7; left > 0; left >>>= 7) bytes.unshift((left & 0x7f) | 0x80)
  return bytes
}

/** A time as in certificates: with two digits of the year until 2049. */
export function time(at: Date): Buffer {
  const digits = `${at.toISOString().replace(/\D/g, '').slice(0, 14)}Z`
  return at.getUTCFullYear() < 2050 ? text(digits.slice(2), tag.utcTime) : text(digits, tag.generalizedTime)
}
