import type { BinaryWriter } from '@bufbuild/protobuf/wire'

/** The encoded message, without another copy. */
export function bytesOf(writer: BinaryWriter): Buffer {
  const { buffer, byteOffset, byteLength } = writer.finish()
  return Buffer.from(buffer, byteOffset, byteLength)
}
