/** Requests that must be answered in time, in the order in which they began. */
export interface Deadlines<T> {
  add(item: T): void
  /** Of an item that has ended. */
  delete(item: T): void
}

/**
 * Calls `expire` for each item that has not ended `limitMs` after its start, of `performance.now()`. All share one timer:
 * one for each request would cost more than the rest of its bookkeeping.
 */
export function openDeadlines<T>(
  limitMs: number,
  startedMsOf: (item: T) => number,
  expire: (item: T) => void,
): Deadlines<T> {
  const items = new Set<T>()
  let timer: NodeJS.Timeout | undefined

  function sweep(): void {
    timer = undefined
    for (const item of items) {
      const leftMs = startedMsOf(item) + limitMs - performance.now()
      if (leftMs > 0) {
        startTimer(leftMs)
        return
      }
      items.delete(item)
      expire(item)
    }
  }
  function startTimer(ms: number): void {
    timer = setTimeout(sweep, Math.ceil(ms)).unref() // the connection keeps the process alive
  }
  return {
    add(item) {
      if (!timer) startTimer(limitMs)
      items.add(item)
    },
    delete: (item) => void items.delete(item),
  }
}
