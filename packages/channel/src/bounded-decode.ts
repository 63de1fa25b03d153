import { BinaryReader } from '@bufbuild/protobuf/wire'

/** A protobuf message with more fields than its receiver decodes. */
export class TooManyFields extends Error {
  override readonly name = 'TooManyFields'
}

/** Decodes one message, which the reader contains. */
export interface Decoder<T> {
  decode(reader: BinaryReader): T
}

/**
 * Decodes a message, and stops as soon as it has more fields than `mostReads` allows: some bytes of a message may be as
 * many empty fields. Throws TooManyFields, or what the decoder throws.
 * @param spend called in any case, with the tags, lengths and small numbers that were read, at every depth
 */
export function decodeBounded<T>(
  decoder: Decoder<T>,
  bytes: Uint8Array,
  mostReads: number,
  spend: (reads: number) => void = () => undefined,
): T {
  const reader = new BinaryReader(bytes)
  const read = reader.uint32
  let reads = 0
  reader.uint32 = () => {
    if (++reads > mostReads) throw new TooManyFields(`more than ${mostReads} fields`)
    return read.call(reader)
  }
  try {
    return decoder.decode(reader)
  } finally {
    spend(reads)
  }
}
