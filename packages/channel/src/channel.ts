import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { encodeFrame, encodeFrameStart, type FrameDecoder, type FrameLimits, frameDecoder } from './frame.js'
import { decodeInt32, encodeBool, encodeInt32 } from './headers.js'
import { startHeartbeats } from './heartbeats.js'
import { openInbox } from './inbox.js'
import {
  FEW_QUEUED_BYTES,
  HEARTBEAT_MS,
  MAX_IDLE_INTERVALS,
  MAX_PENDING,
  MAX_QUEUED_BYTES,
  MAX_WAITING,
  MAX_WAITING_BYTES,
  MESSAGE_LIMITS,
  MESSAGES_PER_TURN,
  PIECE_BYTES,
} from './limits.js'
import {
  contentType,
  type Headers,
  headerKey,
  isReflected,
  type LargeOutgoing,
  type Message,
  type Outgoing,
  ownTypes,
} from './message.js'
import { pendingRequests } from './pending-requests.js'

/** A connection over which both sides send messages, and requests that the other side answers. */
export interface Channel {
  /** Queues a message. Nothing happens if the channel is closed. */
  send(message: Outgoing): void
  /** Sends a request and returns its reply. Throws ChannelClosed, or ReplyTimeout after `timeoutMs`. */
  request(message: Outgoing, timeoutMs: number): Promise<Message>
  /**
   * Sends a message as fast as the peer takes it, without a copy of its body. Other messages wait for its end. Resolves
   * when few bytes are queued. Throws ChannelClosed.
   * @param compose called when its transmission begins: what is sent from then on arrives after it
   */
  sendLarge(compose: () => LargeOutgoing): Promise<void>
  /** The same with a request. The time for its reply includes its transmission. */
  requestLarge(compose: () => LargeOutgoing, timeoutMs: number): Promise<Message>
  /** Sends the answer to a request. */
  reply(to: Message, answer: Outgoing): void
  /** Resolves when few bytes are queued. Senders of many messages wait for it. Throws ChannelClosed. */
  drained(): Promise<void>
  /** Bytes that the peer has not taken yet. */
  queuedBytes(): number
  /** Round trip of the last heartbeat. */
  latencyMs(): number | undefined
  close(reason: string): void
  /** Aborted once the channel is closed; the reason is a ChannelClosed. */
  readonly closed: AbortSignal
}

/** The cause is the failure that closed the channel: MalformedFrame, MalformedHeader, or that of the handler. */
export class ChannelClosed extends Error {
  override readonly name = 'ChannelClosed'
}

export interface ChannelOptions {
  /**
   * Handles a message that is no reply to a pending request. Handlers start in order. Too many messages that wait for
   * theirs pause reading. A failure closes the channel.
   */
  readonly onMessage: (message: Message) => Promise<void> | void
  /** Called in place of `onMessage` with messages that the channel answers itself: many of them can pause reading, too. */
  readonly onOwn?: (message: Message) => Promise<void> | void
  /** Bytes that were read before, beyond the hello. */
  readonly decoder?: FrameDecoder
  /** Defaults to MESSAGE_LIMITS. A frame beyond them closes the channel. */
  readonly limits?: FrameLimits
  /** A peer with more bytes queued loses its channel. */
  readonly maxQueuedBytes?: number
  /** Handlers under way at a time. */
  readonly maxPending?: number
  /** Messages that wait for a handler, before reading pauses. */
  readonly maxWaiting?: number
  /**
   * Defaults to 10 s. A peer that sends or takes nothing during three intervals loses its channel. Infinity: this side
   * sends none, and the peer may be silent.
   */
  readonly heartbeatMs?: number
}

const noHeaders: Headers = new Map()
const noBody = Buffer.alloc(0)
const success = (type: number): Outgoing => ({
  type,
  headers: new Map([[headerKey.resultSuccess, encodeBool(true)]]),
})

/** A socket, or another stream of bytes. An `Outgoing` is one write. */
export type ChannelSocket = Duplex & Partial<Pick<Socket, 'setNoDelay'>>

/** Takes over a socket after the hello. The first handler starts after this returns. */
export function openChannel(socket: ChannelSocket, options: ChannelOptions): Channel {
  const { onMessage, onOwn, decoder = frameDecoder(), heartbeatMs = HEARTBEAT_MS } = options
  const { limits = MESSAGE_LIMITS } = options
  const { maxQueuedBytes = MAX_QUEUED_BYTES, maxPending = MAX_PENDING, maxWaiting = MAX_WAITING } = options
  const closing = new AbortController()
  const requests = pendingRequests()
  const inbox = openInbox({
    onMessage: (message) => (ownTypes.has(message.type) ? onOwn?.(message) : onMessage(message)),
    maxPending,
    maxWaiting,
    maxBytes: MAX_WAITING_BYTES,
    onRoom: read,
    onFailure: fail,
  })
  const heartbeats = startHeartbeats(heartbeatMs, beat)
  let sequence = 0
  let messagesInTurn = 0
  let turn: NodeJS.Immediate | undefined
  let isReading = true
  let silentIntervals = 0
  let stalledIntervals = 0
  let drains: PromiseWithResolvers<void> | undefined
  let large: Promise<void> | undefined // until the end of a message in parts
  let held: Buffer[] = [] // frames that wait for it
  let heldBytes = 0

  function close(reason: string, cause?: unknown): void {
    if (closing.signal.aborted) return
    const closed = new ChannelClosed(reason, { cause })
    heartbeats.stop()
    inbox.clear()
    clearImmediate(turn)
    socket.destroy()
    closing.abort(closed)
    requests.rejectAll(closed)
    drains?.reject(closed)
  }

  function fail(err: unknown): void {
    close(err instanceof Error ? err.message : String(err), err)
  }

  /** What is sent and received within one turn of the event loop shares a TLS record and an answer to heartbeats. */
  function joinTurn(): void {
    if (turn) return
    socket.cork()
    turn = setImmediate(endTurn)
  }

  function endTurn(): void {
    if (heartbeats.hasAnswer()) send({ type: contentType.heartbeat })
    socket.uncork()
    turn = undefined
    messagesInTurn = 0
    if (!isReading && !inbox.isFull()) read()
  }

  function write(frame: Buffer): void {
    if (large) {
      held.push(frame)
      heldBytes += frame.length
    } else writeNow(frame)
    if (queuedBytes() > maxQueuedBytes) close('the peer does not read')
  }

  function writeNow(bytes: Uint8Array): void {
    joinTurn()
    socket.write(bytes, written)
  }

  const queuedBytes = (): number => socket.writableLength + heldBytes

  function written(): void {
    stalledIntervals = 0
    if (!drains || socket.writableLength > FEW_QUEUED_BYTES) return
    drains.resolve()
    drains = undefined
  }

  function nextSequence(): number {
    sequence = sequence === 0x7fffffff ? 1 : sequence + 1
    return sequence
  }

  /** Returns its sequence. */
  function sendMessage({ type, headers = noHeaders, body = noBody }: Outgoing): number {
    const own = nextSequence()
    const due = heartbeats.take()
    write(encodeFrame(type, own, due.length > 0 ? [...headers, ...due] : headers, body))
    return own
  }

  async function sendParts(
    compose: () => LargeOutgoing,
    starts: (sequence: number, type: number) => void = () => undefined,
  ): Promise<void> {
    while (large) await large
    closing.signal.throwIfAborted()
    const { type, headers = noHeaders, parts } = compose()
    const ended = Promise.withResolvers<void>()
    large = ended.promise
    try {
      const own = nextSequence()
      starts(own, type)
      const bytes = parts.reduce((sum, part) => sum + part.length, 0)
      writeNow(encodeFrameStart(type, own, headers, bytes))
      for (const part of parts)
        for (let at = 0; at < part.length; at += PIECE_BYTES) {
          writeNow(part.subarray(at, at + PIECE_BYTES))
          await flushed()
        }
    } finally {
      large = undefined
      const waiting = held
      held = []
      heldBytes = 0
      if (!closing.signal.aborted) for (const frame of waiting) writeNow(frame)
      ended.resolve()
    }
  }

  function send(message: Outgoing): void {
    if (!closing.signal.aborted) sendMessage(message)
  }

  function reply(to: Message, answer: Outgoing): void {
    if (closing.signal.aborted) return
    const reflected = [...to.headers].filter(([key]) => isReflected(key))
    const replyFor = [headerKey.replyFor, encodeInt32(to.sequence)] as const
    const headers = new Map([...reflected, ...(answer.headers ?? noHeaders), replyFor])
    sendMessage({ ...answer, headers })
  }

  async function request(message: Outgoing, timeoutMs: number): Promise<Message> {
    closing.signal.throwIfAborted()
    const own = sendMessage(message)
    closing.signal.throwIfAborted()
    return requests.add(own, message.type, timeoutMs)
  }

  async function requestLarge(compose: () => LargeOutgoing, timeoutMs: number): Promise<Message> {
    const reply = Promise.withResolvers<Message>()
    const sending = sendParts(compose, (own, type) => reply.resolve(requests.add(own, type, timeoutMs)))
    const [answer] = await Promise.all([reply.promise, sending])
    return answer
  }

  async function drained(): Promise<void> {
    while (large) await large
    await flushed()
  }

  async function flushed(): Promise<void> {
    closing.signal.throwIfAborted()
    if (socket.writableLength <= FEW_QUEUED_BYTES) return
    drains ??= Promise.withResolvers<void>()
    await drains.promise
  }

  function receive(message: Message): void {
    heartbeats.receive(message.headers)
    const replyFor = message.headers.get(headerKey.replyFor)
    const isWhole = message.skippedBytes === undefined
    if (replyFor && isWhole && requests.resolve(decodeInt32(replyFor), message)) return
    const { type } = message
    if (type === contentType.ping) reply(message, success(contentType.result))
    else if (type === contentType.latency) reply(message, success(contentType.latencyResponse))
    inbox.push(message)
  }

  function read(): void {
    if (closing.signal.aborted) return
    joinTurn()
    try {
      while (canRead() && !closing.signal.aborted) {
        const message = decoder.next(limits)
        if (!message) break
        messagesInTurn++
        receive(message)
      }
    } catch (err) {
      fail(err)
    }
    if (closing.signal.aborted) return
    isReading = canRead()
    if (isReading) socket.resume()
    else socket.pause()
  }

  const canRead = (): boolean => messagesInTurn < MESSAGES_PER_TURN && !inbox.isFull()

  function beat(isDue: boolean): void {
    silentIntervals = isReading ? silentIntervals + 1 : 0
    stalledIntervals = socket.writableLength > 0 ? stalledIntervals + 1 : 0
    if (silentIntervals > MAX_IDLE_INTERVALS) close('no answer to heartbeats')
    else if (stalledIntervals > MAX_IDLE_INTERVALS) close('the peer does not read')
    else if (isDue) send({ type: contentType.heartbeat })
  }

  socket.setNoDelay?.(true)
  socket.on('data', (chunk: Buffer) => {
    silentIntervals = 0
    decoder.push(chunk)
    read()
  })
  socket.on('error', fail)
  socket.on('end', () => close('closed by the peer'))
  socket.on('close', () => close('closed'))
  if (socket.destroyed) close('closed')
  else setImmediate(read) // handlers may use the channel that is returned

  return {
    send,
    sendLarge: (compose) => sendParts(compose),
    request,
    requestLarge,
    reply,
    drained,
    queuedBytes,
    latencyMs: heartbeats.latencyMs,
    close: (reason) => close(reason),
    closed: closing.signal,
  }
}
