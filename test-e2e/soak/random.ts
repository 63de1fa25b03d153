/** Numbers that a seed repeats. Each stream of one seed has a sequence of its own. */
export interface Random {
  /** An integer from 0 to `below` - 1. */
  int(below: number): number
  /** True with this probability. */
  coin(probability: number): boolean
  /** One element of the list, undefined when it is empty. */
  pick<T>(list: Iterable<T>): T | undefined
}

/** Deals the elements of a list in random order, each once before any comes again. Undefined: the list is empty. */
export function dealer<T>(random: Random, list: () => Iterable<T>): () => T | undefined {
  let left: T[] = []
  return () => {
    if (left.length === 0) left = [...list()]
    return left.splice(random.int(left.length), 1)[0]
  }
}

/** mulberry32, seeded by FNV-1a over the seed and the name of the stream. */
export function randomOf(seed: number, stream: string): Random {
  let state = 0x811c9dc5
  for (const byte of Buffer.from(`${seed} ${stream}`)) state = Math.imul(state ^ byte, 0x01000193)
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (below: number): number => Math.floor(next() * below)
  return {
    int,
    coin: (probability) => next() < probability,
    pick(list) {
      const all = [...list]
      return all[int(all.length)]
    },
  }
}
