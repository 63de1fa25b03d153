/**
 * A set of small numbers. Bits lie in chunks that exist only where there are bits, so that a hundred thousand
 * sets with one member each cost little, and a set of a hundred thousand members is still one bit each.
 */
export interface Bitset {
  readonly chunks: (Uint32Array | undefined)[]
}

const CHUNK_BITS = 12
const WORDS = 1 << (CHUNK_BITS - 5)
const MASK = (1 << CHUNK_BITS) - 1

export const emptySet = (): Bitset => ({ chunks: [] })

export const setOf = (numbers: Iterable<number>): Bitset => {
  const set = emptySet()
  for (const number of numbers) add(set, number)
  return set
}

export function has({ chunks }: Bitset, number: number): boolean {
  const word = chunks[number >>> CHUNK_BITS]?.[(number & MASK) >>> 5] ?? 0
  return (word & (1 << (number & 31))) !== 0
}

export function add({ chunks }: Bitset, number: number): void {
  const at = number >>> CHUNK_BITS
  while (chunks.length <= at) chunks.push(undefined)
  let chunk = chunks[at]
  if (!chunk) {
    chunk = new Uint32Array(WORDS)
    chunks[at] = chunk
  }
  const word = (number & MASK) >>> 5
  chunk[word] = wordOf(chunk, word) | (1 << (number & 31))
}

export function remove({ chunks }: Bitset, number: number): void {
  const chunk = chunks[number >>> CHUNK_BITS]
  const word = (number & MASK) >>> 5
  if (chunk) chunk[word] = wordOf(chunk, word) & ~(1 << (number & 31))
}

export function clear({ chunks }: Bitset): void {
  chunks.length = 0
}

/** Adds all members of `more` to `set`. */
export function addAll(set: Bitset, more: Bitset): void {
  const { chunks } = set
  for (let at = 0; at < more.chunks.length; at++) {
    const from = more.chunks[at]
    if (!from) continue
    while (chunks.length <= at) chunks.push(undefined)
    const to = chunks[at]
    if (!to) chunks[at] = from.slice()
    else for (let word = 0; word < WORDS; word++) to[word] = wordOf(to, word) | wordOf(from, word)
  }
}

const NOTHING = new Uint32Array(WORDS)
const wordOf = (chunk: Uint32Array, word: number): number => chunk[word] ?? 0

function combine(a: Bitset, b: Bitset, operate: (x: number, y: number) => number): Bitset {
  const result = emptySet()
  const length = Math.max(a.chunks.length, b.chunks.length)
  for (let at = 0; at < length; at++) {
    const [x, y] = [a.chunks[at] ?? NOTHING, b.chunks[at] ?? NOTHING]
    const isNothing = x === NOTHING && y === NOTHING
    const chunk = isNothing ? NOTHING : new Uint32Array(WORDS)
    let any = 0
    for (let word = 0; !isNothing && word < WORDS; word++) {
      const value = operate(wordOf(x, word), wordOf(y, word))
      chunk[word] = value
      any |= value
    }
    result.chunks.push(any === 0 ? undefined : chunk)
  }
  return result
}

export const union = (a: Bitset, b: Bitset): Bitset => combine(a, b, (x, y) => x | y)
export const intersection = (a: Bitset, b: Bitset): Bitset => combine(a, b, (x, y) => x & y)
export const difference = (a: Bitset, b: Bitset): Bitset => combine(a, b, (x, y) => x & ~y)
/** The members of exactly one of the two. */
export const distinction = (a: Bitset, b: Bitset): Bitset => combine(a, b, (x, y) => x ^ y)

/** True: every member is in at least one of the others. Stops at the first that is not. */
export function isCovered(set: Bitset, others: readonly Bitset[]): boolean {
  for (let at = 0; at < set.chunks.length; at++) {
    const chunk = set.chunks[at]
    if (!chunk) continue
    for (let word = 0; word < WORDS; word++) {
      let rest = wordOf(chunk, word)
      for (let i = 0; rest !== 0 && i < others.length; i++) {
        rest &= ~wordOf(others[i]?.chunks[at] ?? NOTHING, word)
      }
      if (rest !== 0) return false
    }
  }
  return true
}

/** True: they have a member in common. */
export function meets(a: Bitset, b: Bitset): boolean {
  for (let at = 0; at < a.chunks.length; at++) {
    const x = a.chunks[at]
    const y = b.chunks[at]
    if (!x || !y) continue
    for (let word = 0; word < WORDS; word++) {
      if ((wordOf(x, word) & wordOf(y, word)) !== 0) return true
    }
  }
  return false
}

const none: readonly Bitset[] = []

const isSubset = (a: Bitset, b: Bitset): boolean => isCovered(a, [b])
export const isEmpty = (set: Bitset): boolean => isCovered(set, none)
export const isSame = (a: Bitset, b: Bitset): boolean => isSubset(a, b) && isSubset(b, a)

/** In ascending order. */
export function forEach({ chunks }: Bitset, visit: (number: number) => void): void {
  for (let at = 0; at < chunks.length; at++) {
    const chunk = chunks[at]
    if (!chunk) continue
    for (let word = 0; word < WORDS; word++) {
      let bits = wordOf(chunk, word)
      while (bits !== 0) {
        const lowest = bits & -bits
        visit((at << CHUNK_BITS) | (word << 5) | (31 - Math.clz32(lowest)))
        bits ^= lowest
      }
    }
  }
}

/** In ascending order, while the set may change. */
export function* numbersIn({ chunks }: Bitset): Generator<number, void> {
  for (let at = 0; at < chunks.length; at++) {
    for (let word = 0; word < WORDS; word++) {
      const chunk = chunks[at]
      if (!chunk) break
      let bits = wordOf(chunk, word)
      while (bits !== 0) {
        const lowest = bits & -bits
        yield (at << CHUNK_BITS) | (word << 5) | (31 - Math.clz32(lowest))
        bits ^= lowest
      }
    }
  }
}

export function numbersOf(set: Bitset): number[] {
  const numbers: number[] = []
  forEach(set, (number) => numbers.push(number))
  return numbers
}

export function sizeOf(set: Bitset): number {
  let size = 0
  for (const chunk of set.chunks) {
    // by index: the iterator of the chunk would cost several times as much as the bits
    for (let word = 0; chunk && word < WORDS; word++) size += bitsIn(wordOf(chunk, word))
  }
  return size
}

function bitsIn(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555)
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}
