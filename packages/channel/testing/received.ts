import type { Message } from '../src/index.js'

/** Collects messages for a test. */
export interface Received {
  onMessage(message: Message): void
  /** The next message, once it has arrived. */
  next(): Promise<Message>
}

export function received(): Received {
  const messages: Message[] = []
  const waiting: ((message: Message) => void)[] = []
  return {
    onMessage(message) {
      const first = waiting.shift()
      if (first) first(message)
      else messages.push(message)
    },
    next() {
      const first = messages.shift()
      return first ? Promise.resolve(first) : new Promise((resolve) => waiting.push(resolve))
    },
  }
}
