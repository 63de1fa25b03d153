import { MAX_HEADERS } from './limits.js'
import type { Headers, Message } from './message.js'

/** Bytes that are not a frame, or a frame beyond the limits. */
export class MalformedFrame extends Error {
  override readonly name = 'MalformedFrame'
}

export interface FrameLimits {
  readonly headersBytes: number
  readonly bodyBytes: number
  /** A body beyond `bodyBytes`, and of at most as many bytes, is left out of its message. */
  readonly skippedBytes?: number
}

export const MAGIC = Buffer.from([0x03, 0x06, 0x09, 0x0c])
/** Magic, type, sequence, bytes of the headers, bytes of the body; little-endian. */
const START_BYTES = 20
const SEQUENCE_AT = 8
/** Bytes of a header before its value: key and length. */
const HEADER_START_BYTES = 8

export function encodeFrame(
  type: number,
  sequence: number,
  headers: Iterable<readonly [number, Uint8Array]>,
  body: Uint8Array,
): Buffer {
  const frame = encodeFrameStart(type, sequence, headers, body.length, body.length)
  frame.set(body, frame.length - body.length)
  return frame
}

/** A frame up to its body, and room for as many bytes of it. */
export function encodeFrameStart(
  type: number,
  sequence: number,
  headers: Iterable<readonly [number, Uint8Array]>,
  bodyBytes: number,
  room = 0,
): Buffer {
  const entries = [...headers]
  const headersBytes = entries.reduce((sum, [, value]) => sum + HEADER_START_BYTES + value.length, 0)
  const frame = Buffer.allocUnsafe(START_BYTES + headersBytes + room)
  frame.set(MAGIC, 0)
  frame.writeInt32LE(type, 4)
  frame.writeInt32LE(sequence, SEQUENCE_AT)
  frame.writeUInt32LE(headersBytes, 12)
  frame.writeUInt32LE(bodyBytes, 16)
  let at = START_BYTES
  for (const [key, value] of entries) {
    frame.writeInt32LE(key, at)
    frame.writeUInt32LE(value.length, at + 4)
    frame.set(value, at + HEADER_START_BYTES)
    at += HEADER_START_BYTES + value.length
  }
  return frame
}

/** Cuts a stream of bytes into messages. A body that is left out is not kept: its bytes are dropped as they come. */
export interface FrameDecoder {
  push(chunk: Buffer): void
  /**
   * The next whole message; it shares the memory of the chunks. Throws MalformedFrame, as soon as the first 20 bytes of
   * a frame are wrong or beyond the limits.
   */
  next(limits: FrameLimits): Message | undefined
}

const nothing = Buffer.alloc(0)

export function frameDecoder(): FrameDecoder {
  // unread bytes: those of the last chunk, or a buffer that grows up to the end of the frame
  let buffer: Buffer = nothing
  let start = 0
  let end = 0
  let spare = 0
  let frameBytes = START_BYTES
  let toSkip = 0 // bytes of a body that have not come yet; nothing is unread before they have

  function append(chunk: Buffer): void {
    const needed = end - start + chunk.length
    if (chunk.length > spare) {
      const grown = Buffer.allocUnsafe(Math.max(needed, Math.min(2 * needed, frameBytes)))
      grown.set(buffer.subarray(start, end))
      buffer = grown
      end -= start
      start = 0
    }
    buffer.set(chunk, end)
    end += chunk.length
    spare = buffer.length - end
  }

  function consume(bytes: number): void {
    start += bytes
    frameBytes = START_BYTES
    if (start < end) return
    buffer = nothing
    start = end = spare = 0
  }

  function skip(bytes: number): void {
    const come = Math.min(bytes, end - start)
    toSkip = bytes - come
    consume(come)
  }

  return {
    push(received) {
      const chunk = received.subarray(Math.min(toSkip, received.length))
      toSkip -= received.length - chunk.length
      if (chunk.length === 0) return
      if (start < end) append(chunk)
      else {
        buffer = chunk
        start = spare = 0
        end = chunk.length
      }
    },
    next(limits) {
      const unread = buffer.subarray(start, end)
      if (unread.length < START_BYTES) return undefined
      const lengths = readLengths(unread, limits)
      frameBytes = START_BYTES + lengths.headersBytes + lengths.bodyBytes
      if (unread.length < frameBytes) return undefined
      const frame = unread.subarray(0, frameBytes)
      consume(frameBytes)
      if (lengths.skippedBytes > 0) skip(lengths.skippedBytes)
      return decodeFrame(frame, lengths)
    },
  }
}

type Lengths = Required<FrameLimits>

function readLengths(start: Buffer, limits: FrameLimits): Lengths {
  if (!MAGIC.equals(start.subarray(0, MAGIC.length))) throw new MalformedFrame('bad magic')
  const headersBytes = start.readUInt32LE(12)
  const bodyBytes = start.readUInt32LE(16)
  if (headersBytes > limits.headersBytes) throw new MalformedFrame(`${headersBytes} bytes of headers`)
  if (bodyBytes <= limits.bodyBytes) return { headersBytes, bodyBytes, skippedBytes: 0 }
  if (bodyBytes > (limits.skippedBytes ?? 0)) throw new MalformedFrame(`${bodyBytes} bytes of body`)
  return { headersBytes, bodyBytes: 0, skippedBytes: bodyBytes }
}

const decodeFrame = (frame: Buffer, { headersBytes, skippedBytes }: Lengths): Message => ({
  type: frame.readInt32LE(4),
  sequence: frame.readInt32LE(SEQUENCE_AT),
  headers: decodeHeaders(frame.subarray(START_BYTES, START_BYTES + headersBytes)),
  body: frame.subarray(START_BYTES + headersBytes),
  ...(skippedBytes > 0 && { skippedBytes }),
})

function decodeHeaders(bytes: Buffer): Headers {
  const headers = new Map<number, Buffer>()
  let at = 0
  while (at < bytes.length) {
    const valueAt = at + HEADER_START_BYTES
    if (valueAt > bytes.length) throw new MalformedFrame('a header ends early')
    const end = valueAt + bytes.readUInt32LE(at + 4)
    if (end > bytes.length) throw new MalformedFrame('a header ends early')
    headers.set(bytes.readInt32LE(at), bytes.subarray(valueAt, end))
    if (headers.size > MAX_HEADERS) throw new MalformedFrame(`more than ${MAX_HEADERS} headers`)
    at = end
  }
  return headers
}
