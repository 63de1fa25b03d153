import { MESSAGE_BYTES } from './limits.js'
import { bodyBytesOf, type Message } from './message.js'

/** Runs the handlers of messages, started in order, a bounded number at a time. */
export interface Inbox {
  push(message: Message): void
  /** Whether no more messages should be read: too many wait for their turn. */
  isFull(): boolean
  /** Starts no more handlers. */
  clear(): void
}

export interface InboxOptions {
  readonly onMessage: (message: Message) => Promise<void> | void
  /** Handlers under way at a time. */
  readonly maxPending: number
  readonly maxWaiting: number
  /** Of messages under way, and of those that wait. */
  readonly maxBytes: number
  /** The inbox was full and is no more. */
  readonly onRoom: () => void
  readonly onFailure: (err: unknown) => void
}

export function openInbox(options: InboxOptions): Inbox {
  const { onMessage, maxPending, maxWaiting, maxBytes, onRoom, onFailure } = options
  let waiting: Message[] = []
  let waitingBytes = 0
  let pending = 0
  let pendingBytes = 0

  const canStart = (): boolean => pending < maxPending && pendingBytes < maxBytes
  const isFull = (): boolean => waiting.length >= maxWaiting || waitingBytes >= maxBytes

  function start(message: Message): void {
    const handling = onMessage(message)
    if (!handling) return
    const bytes = bytesOf(message)
    pending++
    pendingBytes += bytes
    handling.then(() => finished(bytes), onFailure)
  }

  function finished(bytes: number): void {
    pending--
    pendingBytes -= bytes
    const wasFull = isFull()
    try {
      for (let next = waiting[0]; next && canStart(); next = waiting[0]) {
        waiting.shift()
        waitingBytes -= bytesOf(next)
        start(next)
      }
    } catch (err) {
      onFailure(err)
    }
    if (wasFull && !isFull()) onRoom()
  }

  return {
    push(message) {
      if (canStart()) {
        start(message)
        return
      }
      waiting.push(message)
      waitingBytes += bytesOf(message)
    },
    isFull,
    clear() {
      waiting = []
      waitingBytes = 0
    },
  }
}

/** A body that was left out counts: a peer that sends many of them waits for their handlers. */
function bytesOf(message: Message): number {
  let bytes = MESSAGE_BYTES + bodyBytesOf(message)
  for (const value of message.headers.values()) bytes += MESSAGE_BYTES + value.length
  return bytes
}
