/** Keys with times. A key has one time. Searches all keys for the earliest time after a key with that time was removed. */
export function openDeadlines() {
  const times = new Map<string, number>()
  let next: number | undefined = Infinity // undefined: not known

  function remove(key: string): void {
    if (times.get(key) === next) next = undefined
    times.delete(key)
  }
  function earliest(): number {
    next ??= [...times.values()].reduce((least, at) => Math.min(least, at), Infinity)
    return next
  }
  return {
    get size() {
      return times.size
    },
    /** The earliest time. Undefined: there is no key. */
    get nextMs(): number | undefined {
      return times.size > 0 ? earliest() : undefined
    },
    /** Adds a key, or changes its time. */
    set(key: string, atMs: number): void {
      remove(key)
      times.set(key, atMs)
      if (next !== undefined) next = Math.min(next, atMs)
    },
    delete: remove,
    /** Removes the keys with a time until then, and returns them in the order of their times. */
    takeUntil(nowMs: number): string[] {
      if (earliest() > nowMs) return []
      const due = [...times].filter(([, at]) => at <= nowMs).sort(([, a], [, b]) => a - b)
      for (const [key] of due) remove(key)
      return due.map(([key]) => key)
    },
  }
}
