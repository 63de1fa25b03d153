import { setMaxListeners } from 'node:events'

/** A call that names no deadline gets the limit of a whole request. */
export const CALL_LIMIT_MS = 10_000

/** A page of 500 rows with much in them, and no more. */
export const MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024

const TICK_MS = 20

const buckets = new Map<number, Set<() => void>>()
let timer: NodeJS.Timeout | undefined

/**
 * Calls `expire` after `ms`, at most a tick late; the answer takes it back. All deadlines share one timer: one
 * for each call would cost as much as the rest of a tagged call.
 */
export function after(ms: number, expire: () => void): () => void {
  const due = Math.ceil((performance.now() + ms) / TICK_MS)
  const bucket = buckets.get(due) ?? new Set()
  buckets.set(due, bucket)
  const entry = (): void => expire() // the same function may be waiting twice
  bucket.add(entry)
  timer ??= setInterval(tick, TICK_MS).unref() // the calls themselves keep the process alive
  return () => bucket.delete(entry)
}

function tick(): void {
  const now = performance.now() / TICK_MS
  for (const [due, bucket] of buckets) {
    if (due > now) continue
    buckets.delete(due)
    for (const expire of bucket) expire()
  }
  if (buckets.size > 0) return
  clearInterval(timer)
  timer = undefined
}

/** Calls `then` once when the signal is aborted, now if it is already; the answer takes it back. */
export function whenAborted(signal: AbortSignal, then: () => void): () => void {
  if (signal.aborted) {
    then()
    return () => undefined
  }
  setMaxListeners(0, signal) // as many as calls are running
  signal.addEventListener('abort', then, { once: true })
  return () => signal.removeEventListener('abort', then)
}
