import { BinaryWriter } from '@bufbuild/protobuf/wire'

const BYTES = 2 // the wire type of messages, strings and bytes

/** What precedes an encoded message of so many bytes as a field of another message. */
export const fieldHead = (field: number, bytes: number): Uint8Array =>
  new BinaryWriter().tag(field, BYTES).uint32(bytes).finish()
