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

/** A binary heap that knows the place of each key, so that it never contains more entries than keys. */
export function openDeadlines(): Deadlines {
  const keys: string[] = []
  const times: number[] = []
  const places = new Map<string, number>()

  const timeAt = (place: number): number => times[place] ?? Infinity
  function put(place: number, key: string, time: number): void {
    keys[place] = key
    times[place] = time
    places.set(key, place)
  }
  const move = (from: number, to: number): void => put(to, keys[from] ?? '', timeAt(from))

  /** Fills a free place, moving it up or down to where the time belongs. */
  function settle(free: number, key: string, time: number): void {
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
    put(place, key, time)
  }

  function remove(key: string): void {
    const place = places.get(key)
    if (place === undefined) return
    places.delete(key)
    const last = keys.pop()
    const time = times.pop()
    if (last !== undefined && time !== undefined && last !== key) settle(place, last, time)
  }

  return {
    get size() {
      return keys.length
    },
    get nextMs() {
      return times[0]
    },
    set: (key, atMs) => settle(places.get(key) ?? keys.length, key, atMs),
    delete: remove,
    takeUntil(nowMs) {
      const taken: string[] = []
      for (let key = keys[0]; key !== undefined && timeAt(0) <= nowMs; key = keys[0]) {
        remove(key)
        taken.push(key)
      }
      return taken
    },
  }
}
