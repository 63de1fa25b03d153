import { BinaryReader } from '@bufbuild/protobuf/wire'
import { asBuffer } from './as-buffer.js'
import { Fault } from './gen/overlay/fault/v1/fault.js'
import { Answer } from './gen/overlay/stream/v1/stream.js'

// as the generated code, but the response, which may be a large page, is not copied

const TAG = 8
const RESPONSE = 18
const FAULT = 26
const EMPTY = Buffer.alloc(0)

/** In parts. */
export function encodeAnswer({ tag = 0, response = EMPTY, fault }: Partial<Answer>): Buffer[] {
  const writer = Answer.encode({ tag, response: EMPTY, fault })
  if (response.length === 0) return [asBuffer(writer.finish())]
  return [asBuffer(writer.uint32(RESPONSE).uint32(response.length).finish()), response]
}

export function decodeAnswer(bytes: Buffer): Answer {
  const reader = new BinaryReader(bytes)
  const answer: Answer = { tag: 0, response: EMPTY, fault: undefined }
  while (reader.pos < reader.len) {
    const key = reader.uint32()
    if (key === TAG) answer.tag = reader.uint32()
    else if (key === RESPONSE) answer.response = asBuffer(reader.bytes())
    else if (key === FAULT) answer.fault = Fault.decode(reader, reader.uint32())
    else reader.skip(key & 7)
  }
  return answer
}
