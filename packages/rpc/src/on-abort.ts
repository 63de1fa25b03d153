import { setMaxListeners } from 'node:events'

/** Calls `listener` once when the signal aborts, or now if it has. Returns a function that removes the listener. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  if (signal.aborted) {
    listener()
    return () => undefined
  }
  setMaxListeners(0, signal) // one for each running call
  signal.addEventListener('abort', listener, { once: true })
  return () => signal.removeEventListener('abort', listener)
}
