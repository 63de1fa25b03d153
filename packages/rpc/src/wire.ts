import type { ClientDuplexStream, ServerDuplexStream } from '@grpc/grpc-js'

/** Carries messages between two processes, in order. */
export interface Wire {
  /** A message, which may be in parts. */
  send(...parts: Buffer[]): void
  /** Bytes or messages that the other process has not taken yet are too many. `drained` follows. */
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

export interface WireEvents {
  /** Throws if it cannot be decoded. The wire is then destroyed. */
  message(bytes: Buffer): void
  /** The other process sends no further messages. */
  ended(): void
  drained(): void
  /** Called once, with what broke the wire, if anything did. */
  closed(err?: unknown): void
}

/** The other process has sent what no process of the product sends. */
export class MalformedMessage extends Error {
  override readonly name = 'MalformedMessage'
}

/** Beyond them, a stream of gRPC is congested, and stuck. */
const MAX_WAITING_MESSAGES = 256
const STUCK_MESSAGES = 10_000

/** One side of a stream of gRPC. `destroy` ends it. */
export function streamWire(
  stream: ClientDuplexStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>,
  { message, ended, drained, closed }: WireEvents,
  destroy: () => void,
): Wire {
  let isClosed = false
  const close = (err?: unknown): void => {
    if (isClosed) return
    isClosed = true
    closed(err)
  }
  stream.on('data', (bytes: Buffer) => {
    try {
      message(bytes)
    } catch (err) {
      close(new MalformedMessage('malformed message', { cause: err }))
      destroy()
    }
  })
  stream.on('end', ended)
  stream.on('drain', drained)
  stream.on('cancelled', () => close())
  stream.on('error', close)
  stream.on('close', () => close())
  return {
    send: (...parts) => void stream.write(Buffer.concat(parts)),
    isCongested: () => stream.writableLength > MAX_WAITING_MESSAGES,
    isStuck: () => stream.writableLength > STUCK_MESSAGES,
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
    end: () => void stream.end(),
    destroy,
  }
}
