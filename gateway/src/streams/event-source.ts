import { reconnect, withWatchdog } from '@overlay/platform/async'
import type { FollowLog } from '@overlay/platform/change-log'
import { type Methods, type NetworkEvent, ownContext, type SessionsServiceService } from '@overlay/rpc'

/** The events of the network. All listeners of a gateway share one stream, which is open while there is a listener. */
export interface EventSource extends AsyncDisposable {
  listen(listener: (event: NetworkEvent) => void): Disposable
  /** Resolves when no later event is missed. Rejects with the reason of the signal. */
  ready(signal: AbortSignal): Promise<void>
}

/** The service sends a message each second. */
const SILENCE_MS = 5000
const PAUSES = { firstMs: 100, longestMs: 2000 }

export function openEventSource(
  sessions: Pick<Methods<typeof SessionsServiceService>, 'watchEvents'>,
  log: FollowLog,
): EventSource {
  const listeners = new Set<(event: NetworkEvent) => void>()
  const waiting = new Set<() => void>()
  let stop: AbortController | undefined
  let running: Promise<void> = Promise.resolve()
  let isOpen = false

  async function read(signal: AbortSignal): Promise<void> {
    const open = (own: AbortSignal) => sessions.watchEvents({}, ownContext(own))
    await reconnect({
      signal,
      ...PAUSES,
      async connect({ works }) {
        try {
          for await (const { events } of withWatchdog(SILENCE_MS, open, signal)) {
            isOpen = true
            works()
            for (const wake of waiting) wake()
            waiting.clear()
            for (const event of events) for (const listener of listeners) listener(event)
          }
          throw new Error('the owner ended the stream')
        } finally {
          isOpen = false
        }
      },
      onOutage: (err) => log.warn({ err }, 'stream of events lost, trying again'),
    })
  }

  return {
    listen(listener) {
      listeners.add(listener)
      if (!stop) {
        const started = new AbortController()
        stop = started
        running = running.then(() => read(started.signal))
      }
      return {
        [Symbol.dispose]() {
          if (!listeners.delete(listener) || listeners.size > 0) return
          stop?.abort()
          stop = undefined
        },
      }
    },
    ready: (signal) =>
      new Promise((resolve, reject) => {
        if (isOpen) return resolve()
        const wake = (): void => {
          signal.removeEventListener('abort', abort)
          resolve()
        }
        const abort = (): void => {
          waiting.delete(wake)
          reject(signal.reason)
        }
        waiting.add(wake)
        signal.addEventListener('abort', abort, { once: true })
        if (signal.aborted) abort()
      }),
    async [Symbol.asyncDispose]() {
      stop?.abort()
      await running
    },
  }
}
