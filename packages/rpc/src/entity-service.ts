import { BinaryReader } from '@bufbuild/protobuf/wire'
import { asBuffer } from './as-buffer.js'
import { EntityServiceService as generated, ListResponse } from './gen/overlay/entity/v1/entity.js'

/** The generated code, which copies the rows of a page one time less often in each direction: they are large. */
export const EntityServiceService = {
  ...generated,
  list: { ...generated.list, responseSerialize: encodeListResponse, responseDeserialize: decodeListResponse },
} satisfies typeof generated
export type EntityServiceService = typeof generated

const ROWS = 10
const EMPTY = Buffer.alloc(0)

/** As `ListResponse.encode`, with the rows at the end. */
export function encodeListResponse(response: ListResponse): Buffer {
  const { rows } = response
  const writer = ListResponse.encode({ ...response, rows: EMPTY })
  if (rows.length === 0) return asBuffer(writer.finish())
  return Buffer.concat([asBuffer(writer.uint32(ROWS).uint32(rows.length).finish()), rows])
}

/** As `ListResponse.decode`, but the rows are a part of `bytes`. */
export function decodeListResponse(bytes: Buffer): ListResponse {
  const reader = new BinaryReader(bytes)
  let rows: Buffer = EMPTY
  let [from, to] = [0, 0]
  while (reader.pos < reader.len) {
    const start = reader.pos
    const key = reader.uint32()
    if (key !== ROWS) {
      reader.skip(key & 7)
      continue
    }
    rows = asBuffer(reader.bytes())
    ;[from, to] = [start, reader.pos]
  }
  const others = Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)])
  return { ...ListResponse.decode(others), rows }
}
