import { setMaxListeners } from 'node:events'
import { type List, openList } from './list.js'

/** The limit of a call that has no deadline: that of a whole request. */
export const CALL_LIMIT_MS = 10_000

/** A page of 500 large rows fits. */
export const MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024

/** Leaves room for the tag of a multiplexed answer. */
export const RESPONSE_LIMIT_BYTES = MESSAGE_LIMIT_BYTES - 64

const TICK_MS = 20

/**
 * Returns a function that calls `expire` after `ms`, at most a tick late, and returns a function that cancels this. All
 * deadlines share one timer: a timer for each call would cost as much as the rest of a multiplexed call. It runs while
 * deadlines are pending.
 */
export function openDeadlines(): (ms: number, expire: () => void) => () => void {
  const buckets = new Map<number, List<() => void>>()
  let pending = 0
  let timer: NodeJS.Timeout | undefined
  const tick = (): void => {
    const now = performance.now() / TICK_MS
    for (const [due, bucket] of buckets) {
      if (due > now && pending > 0) continue
      buckets.delete(due)
      for (let entry = bucket.takeFirst(); entry; entry = bucket.takeFirst()) {
        pending--
        entry()
      }
    }
    if (buckets.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  return (ms, expire) => {
    if (ms === Number.POSITIVE_INFINITY) return () => undefined
    const due = Math.ceil((performance.now() + ms) / TICK_MS)
    const bucket = buckets.get(due) ?? openList()
    buckets.set(due, bucket)
    const place = bucket.add(expire)
    pending++
    timer ??= setInterval(tick, TICK_MS).unref() // the calls themselves keep the process alive
    return () => {
      if (bucket.remove(place)) pending--
    }
  }
}

/** The deadlines of all calls of this process. */
export const expireAfter = openDeadlines()

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
