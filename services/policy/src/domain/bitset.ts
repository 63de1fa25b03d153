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

type Combine = (a: number, b: number) => number

/** Chunks that only one side has are combined with nothing. */
function combine(a: Bitset, b: Bitset, f: Combine): Bitset {
  const result = emptySet()
  const length = Math.max(a.chunks.length, b.chunks.length)
  for (let at = 0; at < length; at++) {
    const x = a.chunks[at] ?? NOTHING
    const y = b.chunks[at] ?? NOTHING
    let any = 0
    const chunk = new Uint32Array(WORDS)
    for (let word = 0; word < WORDS; word++) {
      const value = f(wordOf(x, word), wordOf(y, word))
      chunk[word] = value
      any |= value
    }
    result.chunks.push(any === 0 ? undefined : chunk)
  }
  return result
}

const NOTHING = new Uint32Array(WORDS)
const wordOf = (chunk: Uint32Array, word: number): number => chunk[word] ?? 0

export const union = (a: Bitset, b: Bitset): Bitset => combine(a, b, (x, y) => x | y)
export const intersection = (a: Bitset, b: Bitset): Bitset => combine(a, b, (x, y) => x & y)
export const difference = (a: Bitset, b: Bitset): Bitset => combine(a, b, (x, y) => x & ~y)
/** In one of the two, not in both. */
export const distinction = (a: Bitset, b: Bitset): Bitset => combine(a, b, (x, y) => x ^ y)

/** Does `f` leave anything of the two, chunk by chunk? Stops at the first bit. */
function some(a: Bitset, b: Bitset, f: Combine): boolean {
  for (let at = 0; at < a.chunks.length; at++) {
    const x = a.chunks[at]
    if (!x) continue
    const y = b.chunks[at] ?? NOTHING
    for (let word = 0; word < WORDS; word++) if (f(wordOf(x, word), wordOf(y, word)) !== 0) return true
  }
  return false
}

export const intersects = (a: Bitset, b: Bitset): boolean => some(a, b, (x, y) => x & y)
export const isSubset = (a: Bitset, b: Bitset): boolean => !some(a, b, (x, y) => x & ~y)
export const isEmpty = (set: Bitset): boolean => !some(set, set, (x) => x)
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

export function numbersOf(set: Bitset): number[] {
  const numbers: number[] = []
  forEach(set, (number) => numbers.push(number))
  return numbers
}

export function sizeOf(set: Bitset): number {
  let size = 0
  for (const chunk of set.chunks) for (const word of chunk ?? []) size += bitsIn(word)
  return size
}

function bitsIn(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555)
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return (((fours + (fours >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24
}
