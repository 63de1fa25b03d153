import type { Message } from './message.js'

/** The other side has not answered a request in time. */
export class ReplyTimeout extends Error {
  override readonly name = 'ReplyTimeout'
}

/** Requests by sequence that wait for their reply. */
export interface PendingRequests {
  /** Resolves to the reply. Throws ReplyTimeout, or the reason of `rejectAll`. */
  add(sequence: number, type: number, timeoutMs: number): Promise<Message>
  /** Whether a request waited for this reply. */
  resolve(sequence: number, reply: Message): boolean
  rejectAll(reason: Error): void
}

interface Pending {
  readonly resolve: (reply: Message) => void
  readonly reject: (err: Error) => void
  readonly timer: NodeJS.Timeout
}

export function pendingRequests(): PendingRequests {
  const bySequence = new Map<number, Pending>()

  function take(sequence: number): Pending | undefined {
    const pending = bySequence.get(sequence)
    clearTimeout(pending?.timer)
    bySequence.delete(sequence)
    return pending
  }

  return {
    add: (sequence, type, timeoutMs) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          const timeout = new ReplyTimeout(`no answer to a message of type ${type} within ${timeoutMs} ms`)
          take(sequence)?.reject(timeout)
        }, timeoutMs)
        bySequence.set(sequence, { resolve, reject, timer })
      }),
    resolve(sequence, reply) {
      const pending = take(sequence)
      pending?.resolve(reply)
      return pending !== undefined
    },
    rejectAll(reason) {
      for (const sequence of [...bySequence.keys()]) take(sequence)?.reject(reason)
    },
  }
}
