import { isUtf8 } from 'node:buffer'
import { MAX_ENTRIES, MAX_ENTRY_BYTES } from './limits.js'

/** A value that is shorter or longer than it says, is no text, or has too many or too large entries. */
export class MalformedHeader extends Error {
  override readonly name = 'MalformedHeader'
}

export const encodeText = (text: string): Buffer => Buffer.from(text)

export function decodeText(value: Buffer): string {
  if (!isUtf8(value)) throw new MalformedHeader('a text that is not UTF-8')
  return value.toString()
}

export const encodeBool = (value: boolean): Buffer => Buffer.from([value ? 1 : 0])
export const decodeBool = (value: Buffer): boolean => value.length === 1 && value[0] === 1

export function encodeInt32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeInt32LE(value)
  return bytes
}

export function decodeInt32(value: Buffer): number {
  if (value.length !== 4) throw new MalformedHeader(`${value.length} bytes for 32 bits`)
  return value.readInt32LE()
}

export function encodeUint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeUInt32LE(value)
  return bytes
}

export function decodeUint32(value: Buffer): number {
  if (value.length !== 4) throw new MalformedHeader(`${value.length} bytes for 32 bits`)
  return value.readUInt32LE()
}

export function encodeUint64(value: bigint): Buffer {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeBigUInt64LE(value)
  return bytes
}

/** Whether a mask of any length has a bit. Bit 0 is the lowest one of the last byte. */
export const hasBit = (mask: Buffer, bit: number): boolean =>
  (((mask.at(-1 - (bit >> 3)) ?? 0) >> (bit & 7)) & 1) === 1

/** A mask with these bits, in as few bytes as it needs. */
export function encodeBits(bits: readonly number[]): Buffer {
  const mask = Buffer.alloc((Math.max(...bits) >> 3) + 1)
  for (const bit of bits) {
    const at = mask.length - 1 - (bit >> 3)
    mask[at] = (mask[at] ?? 0) | (1 << (bit & 7))
  }
  return mask
}

export function encodeTextList(texts: readonly string[]): Buffer {
  return entries(
    texts.length,
    texts.flatMap((text) => sized(encodeText(text))),
  )
}

export function decodeTextList(value: Buffer): string[] {
  const read = reader(value)
  const texts = Array.from({ length: read.count() }, () => read.text())
  read.end()
  return texts
}

export function encodeBytesMap(map: ReadonlyMap<number, Uint8Array>): Buffer {
  return entries(
    map.size,
    [...map].flatMap(([key, bytes]) => [encodeUint32(key), ...sized(bytes)]),
  )
}

export function decodeBytesMap(value: Buffer): Map<number, Buffer> {
  const read = reader(value)
  const map = new Map(Array.from({ length: read.count() }, () => [read.uint32(), read.sized()] as const))
  read.end()
  return map
}

export function encodeTextMap(map: ReadonlyMap<string, string>): Buffer {
  return entries(
    map.size,
    [...map].flat().flatMap((text) => sized(encodeText(text))),
  )
}

export function decodeTextMap(value: Buffer): Map<string, string> {
  const read = reader(value)
  const map = new Map(Array.from({ length: read.count() }, () => [read.text(), read.text()] as const))
  read.end()
  return map
}

function entries(count: number, parts: readonly Uint8Array[]): Buffer {
  if (count > MAX_ENTRIES) throw new MalformedHeader(`${count} entries, at most ${MAX_ENTRIES}`)
  return Buffer.concat([encodeUint32(count), ...parts])
}

function sized(bytes: Uint8Array): Uint8Array[] {
  if (bytes.length > MAX_ENTRY_BYTES) throw new MalformedHeader(`an entry of ${bytes.length} bytes`)
  return [encodeUint32(bytes.length), bytes]
}

function reader(value: Buffer) {
  let at = 0
  const take = (length: number): Buffer => {
    if (value.length - at < length) throw new MalformedHeader('a list or map that ends early')
    at += length
    return value.subarray(at - length, at)
  }
  const uint32 = (): number => take(4).readUInt32LE()
  const sized = (): Buffer => {
    const length = uint32()
    if (length > MAX_ENTRY_BYTES) throw new MalformedHeader(`an entry of ${length} bytes`)
    return take(length)
  }
  return {
    uint32,
    count(): number {
      const count = uint32()
      if (count > MAX_ENTRIES) throw new MalformedHeader(`${count} entries, at most ${MAX_ENTRIES}`)
      return count
    },
    sized,
    text: (): string => decodeText(sized()),
    end(): void {
      if (at !== value.length) throw new MalformedHeader('bytes after the last entry')
    },
  }
}
