import type { asn1 } from 'node-forge'
import forge from 'node-forge/lib/asn1.js'
import { DER_BYTES, DER_DEPTH } from './limits.js'

/** One element of DER. */
export interface Element {
  readonly tag: number
  readonly node: asn1.Asn1
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
  numericString: 0x12,
  printableString: 0x13,
  teletexString: 0x14,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const

const limits = { strict: true, parseAllBytes: true, decodeBitStrings: false, maxDepth: DER_DEPTH }

/** Reads bytes that are exactly one element, in its canonical encoding. Throws DerError, also for nested elements. */
export function onlyElement(bytes: Uint8Array): Element {
  if (bytes.length > DER_BYTES) throw new DerError(`longer than ${DER_BYTES} bytes`)
  const text = binary(bytes)
  const node = orDerError('not one element', () => forge.fromDer(text, { ...limits }))
  // the library also reads indefinite lengths and lengths in long form
  if (forge.toDer(node).getBytes() !== text) throw new DerError('encoding is not canonical')
  return elementOf(node)
}

function elementOf(node: asn1.Asn1): Element {
  if (Number(node.type) === longTag) throw new DerError('tag of several bytes')
  return { tag: node.tagClass | (node.constructed ? constructed : 0) | node.type, node }
}

const constructed = 0x20
const longTag = 0x1f
/** Of BMPString, in all classes: the library decodes its content. */
const decodedType = 0x1e

/** The library works on strings of one character a byte. */
const binary = (...parts: readonly Uint8Array[]): string => Buffer.concat(parts).toString('latin1')

function orDerError<T>(message: string, run: () => T): T {
  try {
    return run()
  } catch (cause) {
    throw new DerError(message, { cause })
  }
}

/** An element together with its tag and length. */
export const derOf = ({ node }: Element): Buffer => Buffer.from(forge.toDer(node).getBytes(), 'latin1')

/** The content of a primitive element, which must have this tag. */
export function contentOf(element: Element | undefined, expected: number): Buffer {
  const { type, value } = nodeOf(element, expected)
  if (typeof value !== 'string') throw new DerError(`tag ${expected} has parts`)
  return Number(type) === decodedType ? Buffer.from(value, 'utf16le').swap16() : Buffer.from(value, 'latin1')
}

function nodeOf(element: Element | undefined, expected: number): asn1.Asn1 {
  if (element?.tag !== expected) throw new DerError(`tag ${element?.tag}, not ${expected}`)
  return element.node
}

/** The elements in an element, which must have this tag. */
export function partsOf(element: Element | undefined, expected: number = tag.sequence): readonly Element[] {
  const { value } = nodeOf(element, expected)
  return typeof value === 'string' ? [] : value.map(elementOf)
}

/** An object identifier in dotted form. */
export function objectIdIn(element: Element | undefined): string {
  const bytes = contentOf(element, tag.objectId).toString('latin1')
  return orDerError('not an object id', () => {
    const dotted = forge.derToOid(bytes)
    // the library also reads leading zeros and incomplete ids
    if (forge.oidToDer(dotted).getBytes() !== bytes) throw new DerError('encoding is not canonical')
    return dotted
  })
}

/** The text of a value in a Name. Of lists, such as postal addresses, and of bits their DER. */
export function stringIn(element: Element): string {
  switch (element.tag) {
    case tag.teletexString:
    case tag.bmpString:
      return String(element.node.value)
    case tag.utf8String:
    case tag.numericString:
    case tag.printableString:
    case tag.ia5String:
      return contentOf(element, element.tag).toString()
    case tag.sequence:
    case tag.bitString:
      return derOf(element).toString('latin1')
    default: // TLS libraries refuse a certificate with other types
      throw new DerError(`tag ${element.tag} in a name`)
  }
}

/** The bytes of a BIT STRING without unused bits. */
export function bytesOfBits(element: Element | undefined): Buffer {
  const content = contentOf(element, tag.bitString)
  if (content[0] !== 0) throw new DerError('bits are no bytes')
  return content.subarray(1)
}

/**
 * `parts`: elements or their DER where the tag is constructed, else elements or bytes. Not for BMPString, whose content
 * the library converts.
 */
export function encode(tag: number, ...parts: readonly (Element | Uint8Array)[]): Element {
  const isConstructed = (tag & constructed) !== 0
  const value = isConstructed
    ? parts.map((part) => ('node' in part ? part : onlyElement(part)).node)
    : binary(...parts.map((part) => ('node' in part ? derOf(part) : part)))
  return elementOf(forge.create(tag & 0xc0, tag & 0x1f, isConstructed, value))
}

export const sequence = (...parts: readonly (Element | Uint8Array)[]): Element =>
  encode(tag.sequence, ...parts)

export const text = (of: string, tag: number): Element => encode(tag, Buffer.from(of))

export const bits = (bytes: Uint8Array, unused = 0): Element =>
  encode(tag.bitString, Buffer.from([unused]), bytes)

export const objectId = (dotted: string): Element =>
  encode(tag.objectId, Buffer.from(forge.oidToDer(dotted).getBytes(), 'latin1'))

/** A time as in certificates: with two digits of the year until 2049. */
export const time = (at: Date): Element =>
  at.getUTCFullYear() < 2050
    ? text(forge.dateToUtcTime(at), tag.utcTime)
    : text(forge.dateToGeneralizedTime(at), tag.generalizedTime)
