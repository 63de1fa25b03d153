import type { Message } from './message.js'

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
  readonly maxWaitingBytes: number
  /** The inbox was full and is no more. */
  readonly onRoom: () => void
  readonly onFailure: (err: unknown) => void
}

export function openInbox(options: InboxOptions): Inbox {
  const { onMessage, maxPending, maxWaiting, maxWaitingBytes, onRoom, onFailure } = options
  let waiting: Message[] = []
  let waitingBytes = 0
  let pending = 0

  const isFull = (): boolean => waiting.length >= maxWaiting || waitingBytes >= maxWaitingBytes

  function start(message: Message): void {
    const handling = onMessage(message)
    if (!handling) return
    pending++
    handling.then(finished, onFailure)
  }

  function finished(): void {
    pending--
    const wasFull = isFull()
    try {
      for (let next = waiting[0]; next && pending < maxPending; next = waiting[0]) {
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
      if (pending < maxPending) {
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

/** Memory of a message beside its values, about. */
const MESSAGE_BYTES = 256

function bytesOf({ headers, body }: Message): number {
  let bytes = MESSAGE_BYTES + body.length
  for (const value of headers.values()) bytes += MESSAGE_BYTES + value.length
  return bytes
}
