const REPEATED_WITHIN_MS = 60_000
const MAX_REMEMBERED = 10_000

/** Whether the same has happened within a minute. Forgets the oldest of many. */
export function openRepetitions(): (what: string) => boolean {
  const times = new Map<string, number>()
  return (what) => {
    const last = times.get(what)
    if (last !== undefined && performance.now() - last < REPEATED_WITHIN_MS) return true
    times.delete(what)
    times.set(what, performance.now())
    const [oldest] = times.keys()
    if (times.size > MAX_REMEMBERED && oldest !== undefined) times.delete(oldest)
    return false
  }
}
