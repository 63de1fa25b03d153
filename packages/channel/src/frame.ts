import type { Headers, Message } from './message.js'

/** Bytes that are not a frame, or a frame beyond the limits. */
export class MalformedFrame extends Error {
  override readonly name = 'MalformedFrame'
}

export const MAGIC = Buffer.from([0x03, 0x06, 0x09, 0x0c])
const FRAME_BYTES = 20

export interface FrameLimits {
  readonly headersBytes: number
  readonly bodyBytes: number
}

/** Before the peer is known. */
export const HELLO_LIMITS: FrameLimits = { headersBytes: 4192, bodyBytes: 4192 }
export const MESSAGE_LIMITS: FrameLimits = { headersBytes: 1024 * 1024, bodyBytes: 4 * 1024 * 1024 }

/** One frame: 20 bytes (magic, type, sequence, lengths; little-endian), the headers, the body. */
export function encodeFrame(
  type: number,
  sequence: number,
  headers: Iterable<readonly [number, Uint8Array]>,
  body: Uint8Array,
): Buffer {
  const entries = [...headers]
  const headersBytes = entries.reduce((sum, [, value]) => sum + 8 + value.length, 0)
  const frame = Buffer.allocUnsafe(FRAME_BYTES + headersBytes + body.length)
  frame.set(MAGIC, 0)
  frame.writeInt32LE(type, 4)
  frame.writeInt32LE(sequence, 8)
  frame.writeUInt32LE(headersBytes, 12)
  frame.writeUInt32LE(body.length, 16)
  let at = FRAME_BYTES
  for (const [key, value] of entries) {
    frame.writeInt32LE(key, at)
    frame.writeUInt32LE(value.length, at + 4)
    frame.set(value, at + 8)
    at += 8 + value.length
  }
  frame.set(body, at)
  return frame
}

/** Cuts a stream of bytes into messages. */
export interface FrameDecoder {
  push(chunk: Buffer): void
  /** The next whole message. Throws MalformedFrame as soon as its first 20 bytes are wrong or beyond the limits. */
  next(limits: FrameLimits): Message | undefined
}

export function frameDecoder(): FrameDecoder {
  let chunks: Buffer[] = []
  let length = 0

  const peek = (bytes: number): Buffer => {
    if ((chunks[0]?.length ?? 0) < bytes) chunks = [Buffer.concat(chunks)]
    return chunks[0] ?? Buffer.alloc(0)
  }
  const take = (bytes: number): Buffer => {
    const first = peek(bytes)
    length -= bytes
    if (first.length === bytes) chunks.shift()
    else chunks[0] = first.subarray(bytes)
    return first.subarray(0, bytes)
  }
  return {
    push(chunk) {
      chunks.push(chunk)
      length += chunk.length
    },
    next(limits) {
      if (length < FRAME_BYTES) return undefined
      const start = peek(FRAME_BYTES)
      if (!MAGIC.equals(start.subarray(0, 4))) throw new MalformedFrame('bad magic')
      const headersBytes = start.readUInt32LE(12)
      const bodyBytes = start.readUInt32LE(16)
      if (headersBytes > limits.headersBytes) throw new MalformedFrame(`${headersBytes} bytes of headers`)
      if (bodyBytes > limits.bodyBytes) throw new MalformedFrame(`${bodyBytes} bytes of body`)
      if (length < FRAME_BYTES + headersBytes + bodyBytes) return undefined
      const frame = take(FRAME_BYTES + headersBytes + bodyBytes)
      return {
        type: frame.readInt32LE(4),
        sequence: frame.readInt32LE(8),
        headers: decodeHeaders(frame.subarray(FRAME_BYTES, FRAME_BYTES + headersBytes)),
        body: frame.subarray(FRAME_BYTES + headersBytes),
      }
    },
  }
}

function decodeHeaders(bytes: Buffer): Headers {
  const headers = new Map<number, Buffer>()
  let at = 0
  while (at < bytes.length) {
    if (bytes.length - at < 8) throw new MalformedFrame('a header that ends early')
    const end = at + 8 + bytes.readUInt32LE(at + 4)
    if (end > bytes.length) throw new MalformedFrame('a header that ends early')
    headers.set(bytes.readInt32LE(at), bytes.subarray(at + 8, end))
    at = end
  }
  return headers
}
