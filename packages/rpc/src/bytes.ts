import type { BinaryWriter } from '@bufbuild/protobuf/wire'

/** What was written, without another copy. */
export function bytesOf(writer: BinaryWriter): Buffer {
  const { buffer, byteOffset, byteLength } = writer.finish()
  return Buffer.from(buffer, byteOffset, byteLength)
}
