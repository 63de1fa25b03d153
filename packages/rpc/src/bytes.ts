import type { BinaryWriter } from '@bufbuild/protobuf/wire'

/** The encoded message, without another copy. */
export const bytesOf = (writer: BinaryWriter): Buffer => bufferOf(writer.finish())

/** The same memory. */
export const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)
