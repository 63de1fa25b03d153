import type { TLSSocket } from 'node:tls'
import { CONGESTED_BYTES, MESSAGE_LIMIT_BYTES, STUCK_BYTES } from './limits.js'

/** The protocol of ALPN: messages, each after its length in four bytes. */
export const FRAMES = 'overlay-frames/1'

const HEAD_BYTES = 4

/** Carries messages between two processes, in order. */
export interface FrameConnection {
  send(message: Buffer): void
  /** The other process does not read fast enough. `drained` follows. */
  isCongested(): boolean
  /** So much waits that the other process does not seem to read at all. */
  isStuck(): boolean
  /** Reads no further messages until `resume`. */
  pause(): void
  resume(): void
  /** Sends no further messages. */
  end(): void
  /** Ends both directions now. */
  destroy(): void
}

export interface FrameEvents {
  /** Throws if the message cannot be decoded. The connection is then destroyed. */
  message(bytes: Buffer): void
  /** The other process sends no further messages. */
  ended(): void
  drained(): void
  /** Called once, with what broke the connection, if anything did. */
  closed(err?: unknown): void
}

/** The other process has sent what no process of the product sends. */
export class MalformedMessage extends Error {
  override readonly name = 'MalformedMessage'
}

/** Carries frames over a socket. The messages of one turn of the event loop are written at once. */
export function carryFrames(
  socket: TLSSocket,
  { message, ended, drained, closed }: FrameEvents,
): FrameConnection {
  let failure: unknown

  function send(message: Buffer): void {
    if (!socket.writable) return
    if (socket.writableCorked === 0) {
      socket.cork()
      setImmediate(() => socket.uncork())
    }
    const head = Buffer.allocUnsafe(HEAD_BYTES)
    head.writeUInt32BE(message.length)
    socket.write(head)
    socket.write(message)
  }

  const fail = (err: unknown): void => {
    failure ??= err
    socket.destroy()
  }
  const read = openFrameReader(message)
  socket.on('data', (chunk: Buffer) => {
    try {
      read(chunk)
    } catch (err) {
      fail(new MalformedMessage('malformed frame', { cause: err }))
    }
  })
  socket.on('end', ended)
  socket.on('drain', drained)
  socket.on('error', fail)
  socket.on('close', () => closed(failure))
  return {
    send,
    isCongested: () => socket.writableLength > CONGESTED_BYTES,
    isStuck: () => socket.writableLength > STUCK_BYTES,
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    end: () => void socket.end(),
    destroy: () => void socket.destroy(),
  }
}

/** Returns a function that takes the bytes of frames as they arrive. It throws at a length beyond the limit. */
export function openFrameReader(message: (bytes: Buffer) => void): (chunk: Buffer) => void {
  let chunks: Buffer[] = [] // of the frame that is incomplete
  let bytes = 0
  let neededBytes = HEAD_BYTES
  return (chunk) => {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes < neededBytes) return
    const data = chunks.length === 1 ? chunk : Buffer.concat(chunks, bytes)
    let at = 0
    for (;;) {
      neededBytes = HEAD_BYTES
      if (data.length - at < neededBytes) break
      const length = data.readUInt32BE(at)
      if (length > MESSAGE_LIMIT_BYTES) throw new Error(`frame of ${length} bytes`)
      neededBytes += length
      if (data.length - at < neededBytes) break
      message(data.subarray(at + HEAD_BYTES, at + neededBytes))
      at += neededBytes
    }
    chunks = at < data.length ? [data.subarray(at)] : []
    bytes = data.length - at
  }
}
