import { BinaryReader } from '@bufbuild/protobuf/wire'
import { bufferOf } from './bytes.js'
import { Fault } from './gen/overlay/fault/v1/fault.js'
import type { Answer } from './gen/overlay/stream/v1/stream.js'

const TAG = 8
const RESPONSE = 18
const FAULT = 26

/** As `Answer.decode`, but the response is a part of `bytes`, since a copy of a page would be another large buffer. */
export function answerIn(bytes: Buffer): Answer {
  const reader = new BinaryReader(bytes)
  const answer: Answer = { tag: 0, response: EMPTY, fault: undefined }
  while (reader.pos < reader.len) {
    const key = reader.uint32()
    if (key === TAG) answer.tag = reader.uint32()
    else if (key === RESPONSE) answer.response = bufferOf(reader.bytes())
    else if (key === FAULT) answer.fault = Fault.decode(reader, reader.uint32())
    else reader.skip(key & 7)
  }
  return answer
}

const EMPTY = Buffer.alloc(0)
