import { openList, type Place } from '@overlay/rpc'

/** Things that must end in time, in the order in which they began. */
export interface Deadlines<T> {
  add(item: T): Place<T>
  /** Of an item that has ended. */
  remove(place: Place<T>): void
}

/**
 * Calls `expire` for each item that has not ended `limitMs` after its start, of `performance.now()`. All share one timer, since one for each
 * would cost more than the rest of the bookkeeping. It runs for at most one limit longer than there are items.
 */
export function openDeadlines<T>(
  limitMs: number,
  startedMsOf: (item: T) => number,
  expire: (item: T) => void,
): Deadlines<T> {
  const items = openList<T>()
  let timer: NodeJS.Timeout | undefined

  function sweep(): void {
    timer = undefined
    const lateMs = performance.now() - limitMs
    for (let item = items.first(); item !== undefined; item = items.first()) {
      const leftMs = startedMsOf(item) - lateMs
      if (leftMs > 0) {
        arm(leftMs)
        return
      }
      items.takeFirst()
      expire(item)
    }
  }
  function arm(ms: number): void {
    timer = setTimeout(sweep, Math.ceil(ms)).unref() // the connection keeps the process alive
  }
  return {
    add(item) {
      if (!timer) arm(limitMs)
      return items.add(item)
    },
    remove: (place) => void items.remove(place),
  }
}
