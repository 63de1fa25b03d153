/** For how long followers have missed changes. */
export interface Lateness {
  /** The heads of all schemas at a time. */
  note(heads: ReadonlyMap<string, number>, atMs: number): void
  /** How long ago the oldest head was noted that the position has not reached. 0: it has reached all of them. */
  of(schema: string, position: number, atMs: number): number
}

interface Head {
  readonly number: number
  readonly atMs: number
}

const MOST = 100

/**
 * Positions of one moment cannot tell a follower that is late from one that is a few milliseconds behind a busy owner. So
 * each look remembers the heads, and a follower is late that has not reached the head of a former look.
 */
export function openLateness(): Lateness {
  const looks = new Map<string, Head[]>()
  return {
    note(heads, atMs) {
      for (const [schema, number] of heads) {
        // of a restored backup
        const earlier = (looks.get(schema) ?? []).filter((head) => head.number < number)
        const same = looks.get(schema)?.find((head) => head.number === number)
        looks.set(schema, [...earlier, same ?? { number, atMs }].slice(-MOST))
      }
    },
    of(schema, position, atMs) {
      const missed = looks.get(schema)?.find(({ number }) => number > position)
      return missed ? atMs - missed.atMs : 0
    },
  }
}
