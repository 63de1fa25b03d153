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

interface Pending extends PromiseWithResolvers<Message> {
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
    add(sequence, type, timeoutMs) {
      const timeout = (): void =>
        take(sequence)?.reject(
          new ReplyTimeout(`no answer to a message of type ${type} within ${timeoutMs} ms`),
        )
      const pending = { ...Promise.withResolvers<Message>(), timer: setTimeout(timeout, timeoutMs) }
      bySequence.set(sequence, pending)
      return pending.promise
    },
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
