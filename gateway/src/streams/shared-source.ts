import type { NetworkEvent } from '@overlay/rpc'

type Listener = (event: NetworkEvent) => void

/** Events for the streams of a gateway. All listeners share one reader, which runs while there is a listener. */
export interface EventSource extends AsyncDisposable {
  listen(listener: Listener): Disposable
  /** Resolves when no later event is missed. Rejects with the reason of the signal. */
  ready(signal: AbortSignal): Promise<void>
}

/** What the reader reports. */
export interface EventSink {
  readonly emit: Listener
  /** No later event is missed from now on. */
  opened(): void
  /** Events may be missed until the reader is open again. */
  closed(): void
}

/** @param read runs until its signal is aborted */
export function openSharedSource(read: (sink: EventSink, signal: AbortSignal) => Promise<void>): EventSource {
  const listeners = new Set<Listener>()
  const waiting = new Set<() => void>()
  let stop: AbortController | undefined
  let running: Promise<void> = Promise.resolve()
  let isOpen = false

  /** A reader that is stopping may still open. */
  const sinkOf = (signal: AbortSignal): EventSink => ({
    emit(event) {
      for (const listener of listeners) listener(event)
    },
    opened() {
      if (signal.aborted) return
      isOpen = true
      for (const wake of waiting) wake()
      waiting.clear()
    },
    closed: close,
  })
  function close(): void {
    isOpen = false
  }

  return {
    listen(listener) {
      listeners.add(listener)
      if (!stop) {
        const started = new AbortController()
        stop = started
        const { signal } = started
        running = running.then(() => read(sinkOf(signal), signal)).finally(close)
      }
      return {
        [Symbol.dispose]() {
          if (!listeners.delete(listener) || listeners.size > 0) return
          stop?.abort()
          stop = undefined
          close()
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
