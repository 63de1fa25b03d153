/** Keys in the order of their times. A key has one time. */
export interface Deadlines {
  readonly size: number
  /** The earliest time. Undefined: there is no key. */
  readonly nextMs: number | undefined
  /** Adds a key, or changes its time. */
  set(key: string, atMs: number): void
  delete(key: string): void
  /** Removes the keys with a time until then, and returns them in the order of their times. */
  takeUntil(nowMs: number): string[]
}

/**
 * A binary heap that knows the place of each key, so that it never contains more entries than keys. Keys have numbers,
 * because an entry that moves changes its place, and a map of places by key would be most of the work.
 */
export function openDeadlines(): Deadlines {
  const numbers = new Map<string, number>()
  const keys: string[] = []
  const unused: number[] = []
  const places: number[] = []
  const heap: number[] = []
  const times: number[] = []

  const timeAt = (place: number): number => times[place] ?? Infinity
  function put(place: number, number: number, time: number): void {
    heap[place] = number
    times[place] = time
    places[number] = place
  }
  const move = (from: number, to: number): void => put(to, heap[from] ?? 0, timeAt(from))

  /** Fills a free place, moving it up or down to where the time belongs. */
  function settle(free: number, number: number, time: number): void {
    let place = free
    for (let parent = (place - 1) >> 1; place > 0 && time < timeAt(parent); parent = (place - 1) >> 1) {
      move(parent, place)
      place = parent
    }
    for (;;) {
      const left = 2 * place + 1
      const child = timeAt(left + 1) < timeAt(left) ? left + 1 : left
      if (time <= timeAt(child)) break
      move(child, place)
      place = child
    }
    put(place, number, time)
  }

  function numberOf(key: string): number {
    const number = unused.pop() ?? keys.length
    keys[number] = key
    numbers.set(key, number)
    return number
  }

  function remove(key: string): void {
    const number = numbers.get(key)
    if (number === undefined) return
    numbers.delete(key)
    unused.push(number)
    const place = places[number] ?? 0
    const last = heap.pop() ?? 0
    const time = times.pop() ?? 0
    if (last !== number) settle(place, last, time)
  }

  return {
    get size() {
      return heap.length
    },
    get nextMs() {
      return times[0]
    },
    set(key, atMs) {
      const number = numbers.get(key)
      if (number === undefined) settle(heap.length, numberOf(key), atMs)
      else settle(places[number] ?? 0, number, atMs)
    },
    delete: remove,
    takeUntil(nowMs) {
      const taken: string[] = []
      while (timeAt(0) <= nowMs) {
        const key = keys[heap[0] ?? 0] ?? ''
        remove(key)
        taken.push(key)
      }
      return taken
    },
  }
}
