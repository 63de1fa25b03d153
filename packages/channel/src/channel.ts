import type { Duplex } from 'node:stream'
import { encodeFrame, type FrameDecoder, frameDecoder, MESSAGE_LIMITS } from './frame.js'
import { decodeInt32, encodeInt32, encodeUint64 } from './headers.js'
import { contentType, headerKey, isReflected, type Message, type Outgoing } from './message.js'

/** A connection over which both sides send messages, and requests that the other side answers. */
export interface Channel {
  /** Queues a message. Nothing happens if the channel is closed. */
  send(message: Outgoing): void
  /** Sends a request and returns its reply. Throws ChannelClosed, or ReplyTimeout after `timeoutMs`. */
  request(message: Outgoing, timeoutMs: number): Promise<Message>
  /** Sends the answer to a request. */
  reply(to: Message, answer: Outgoing): void
  close(reason: string): void
  /** Aborted once the channel is closed; the reason is a ChannelClosed. */
  readonly closed: AbortSignal
  /** Bytes that the peer has not taken yet. */
  queuedBytes(): number
}

export class ChannelClosed extends Error {
  override readonly name = 'ChannelClosed'
}

export class ReplyTimeout extends Error {
  override readonly name = 'ReplyTimeout'
}

export interface ChannelOptions {
  /**
   * Handles a message that is no reply to a pending request. Messages start in order. While too many are under way the
   * channel reads no more. A failure closes the channel.
   */
  readonly onMessage: (message: Message) => Promise<void> | void
  /** Bytes that were read before, beyond the hello. */
  readonly decoder?: FrameDecoder
  /** A peer that takes nothing for so long that more is queued loses its channel. */
  readonly maxQueuedBytes?: number
  /** Messages under way at a time. */
  readonly maxPending?: number
  /** Defaults to 10 s. A peer that has not answered a heartbeat for three intervals loses its channel. */
  readonly heartbeatMs?: number
}

const MAX_QUEUED_BYTES = 32 * 1024 * 1024
const MAX_PENDING = 64
const HEARTBEAT_MS = 10_000
const ANSWER_HEARTBEAT_MS = 2
const MISSED_HEARTBEATS = 3

interface Waiter {
  resolve(message: Message): void
  reject(err: Error): void
}

const noBody = Buffer.alloc(0)

const pong = (type: number): Outgoing => ({
  type,
  headers: new Map([[headerKey.resultSuccess, Buffer.from([1])]]),
})

/** Takes over a socket after the hello. */
export function openChannel(socket: Duplex, options: ChannelOptions): Channel {
  const { onMessage, maxQueuedBytes = MAX_QUEUED_BYTES, maxPending = MAX_PENDING } = options
  const { decoder = frameDecoder(), heartbeatMs = HEARTBEAT_MS } = options
  const waiters = new Map<number, Waiter>()
  const closing = new AbortController()
  let sequence = 0
  let pending = 0
  let isCorked = false
  let heartbeatIsDue = false
  let heartbeatAnswer: Buffer | undefined
  let answerTimer: NodeJS.Timeout | undefined
  let unansweredBeats = 0

  function close(reason: string): void {
    if (closing.signal.aborted) return
    const closed = new ChannelClosed(reason)
    closing.abort(closed)
    clearInterval(beats)
    clearTimeout(answerTimer)
    socket.destroy()
    for (const { reject } of waiters.values()) reject(closed)
    waiters.clear()
  }

  function write(type: number, headers: Map<number, Uint8Array>, body: Uint8Array): number {
    if (heartbeatAnswer) headers.set(headerKey.heartbeatResponse, heartbeatAnswer)
    if (heartbeatIsDue) headers.set(headerKey.heartbeat, encodeUint64(BigInt(Date.now()) * 1_000_000n))
    heartbeatAnswer = undefined
    heartbeatIsDue = false
    sequence = (sequence + 1) & 0x7fffffff
    if (!isCorked) {
      isCorked = true
      socket.cork() // messages of one turn share a TLS record
      setImmediate(() => {
        isCorked = false
        socket.uncork()
      })
    }
    socket.write(encodeFrame(type, sequence, headers, body))
    if (socket.writableLength > maxQueuedBytes) close('the peer does not read')
    return sequence
  }

  function send({ type, headers, body = noBody }: Outgoing): number {
    return closing.signal.aborted ? 0 : write(type, new Map(headers), body)
  }

  function reply(to: Message, { type, headers, body = noBody }: Outgoing): void {
    if (closing.signal.aborted) return
    const reflected = [...to.headers].filter(([key]) => isReflected(key))
    const replyFor = [headerKey.replyFor, encodeInt32(to.sequence)] as const
    write(type, new Map<number, Uint8Array>([...reflected, ...(headers ?? []), replyFor]), body)
  }

  const request = (message: Outgoing, timeoutMs: number): Promise<Message> =>
    new Promise((resolve, reject) => {
      if (closing.signal.aborted) return reject(closing.signal.reason)
      const own = send(message)
      const settle = (): void => {
        clearTimeout(timer)
        waiters.delete(own)
      }
      const timer = setTimeout(() => {
        settle()
        reject(new ReplyTimeout(`no answer to a message of type ${message.type} within ${timeoutMs} ms`))
      }, timeoutMs)
      waiters.set(own, {
        resolve(reply) {
          settle()
          resolve(reply)
        },
        reject(err) {
          settle()
          reject(err)
        },
      })
      if (closing.signal.aborted) waiters.get(own)?.reject(closing.signal.reason)
    })

  function noteHeartbeats({ headers }: Message): void {
    if (headers.has(headerKey.heartbeatResponse)) unansweredBeats = 0
    const beat = headers.get(headerKey.heartbeat)
    if (!beat) return
    heartbeatAnswer = Buffer.from(beat)
    answerTimer ??= setTimeout(() => {
      answerTimer = undefined
      if (heartbeatAnswer) send({ type: contentType.heartbeat })
    }, ANSWER_HEARTBEAT_MS)
  }

  function receive(message: Message): void {
    noteHeartbeats(message)
    if (message.type === contentType.heartbeat) return
    const replyFor = message.headers.get(headerKey.replyFor)
    const waiter = replyFor && waiters.get(decodeInt32(replyFor))
    if (waiter) waiter.resolve(message)
    else if (message.type === contentType.ping) reply(message, pong(contentType.result))
    else if (message.type === contentType.latency) reply(message, pong(contentType.latencyResponse))
    else handle(message)
  }

  function handle(message: Message): void {
    const handling = onMessage(message)
    if (!handling) return
    pending++
    handling.then(handled, fail)
  }

  function handled(): void {
    pending--
    if (pending < maxPending) drain()
  }

  const fail = (err: unknown): void => close(err instanceof Error ? err.message : String(err))

  function drain(): void {
    try {
      while (pending < maxPending && !closing.signal.aborted) {
        const message = decoder.next(MESSAGE_LIMITS)
        if (!message) break
        receive(message)
      }
    } catch (err) {
      fail(err)
    }
    if (closing.signal.aborted) return
    if (pending < maxPending) socket.resume()
    else socket.pause()
  }

  function beat(): void {
    if (unansweredBeats >= MISSED_HEARTBEATS) {
      close('no answer to heartbeats')
      return
    }
    unansweredBeats++
    heartbeatIsDue = true
    send({ type: contentType.heartbeat })
  }
  const beats = setInterval(beat, heartbeatMs)

  socket.on('data', (chunk: Buffer) => {
    decoder.push(chunk)
    drain()
  })
  socket.on('error', (err) => close(err.message))
  socket.on('end', () => close('closed by the peer'))
  socket.on('close', () => close('closed'))
  drain()

  return {
    send: (message) => void send(message),
    request,
    reply,
    close,
    closed: closing.signal,
    queuedBytes: () => socket.writableLength,
  }
}
