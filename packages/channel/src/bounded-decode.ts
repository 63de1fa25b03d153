import { BinaryReader } from '@bufbuild/protobuf/wire'

/** A protobuf message with more fields than its receiver wants to decode. */
export class TooManyFields extends Error {
  override readonly name = 'TooManyFields'
}

interface Decoder<T> {
  decode(reader: BinaryReader): T
}

/** A message, and what it cost to decode. */
export interface Decoded<T> {
  readonly message: T
  /** Tags, lengths and small numbers that were read, at every depth. */
  readonly reads: number
}

/**
 * Decodes a message, and stops as soon as it has more fields than `mostReads` allows: some bytes of a message may be as
 * many empty fields. Throws TooManyFields, or what the decoder throws.
 */
export function decodeBounded<T>(decoder: Decoder<T>, bytes: Uint8Array, mostReads: number): Decoded<T> {
  const reader = new BinaryReader(bytes)
  const read = reader.uint32
  let reads = 0
  reader.uint32 = () => {
    if (++reads > mostReads) throw new TooManyFields(`more than ${mostReads} fields`)
    return read.call(reader)
  }
  return { message: decoder.decode(reader), reads }
}
