import { LRUCache } from 'lru-cache'

/**
 * Bounded by bytes: evicts the least recently used value first, where the first use after each addition counts. Counts
 * look-ups for the metrics.
 */
export interface Lru<V> {
  get(key: string): V | undefined
  set(key: string, value: V, bytes: number): void
  /** Adds to the size of a value that now takes more room. */
  grow(key: string, bytes: number): void
  delete(key: string): boolean
  clear(): void
  readonly size: number
  readonly bytes: number
  /** Look-ups since the last call. */
  takeCounts(): { readonly hits: number; readonly misses: number }
}

/** What the metrics read of a cache. */
export type Gauged = Pick<Lru<unknown>, 'bytes' | 'takeCounts'>

export interface LruOptions<V> {
  readonly maxBytes: number
  /** Runs for every value that leaves, replaced ones included. */
  readonly dispose?: (value: V, key: string) => void
}

interface Slot<V> {
  readonly value: V
  /** The additions up to its last use. Nothing is evicted before the next one. */
  usedAt: number
}

export function lru<V>({ maxBytes, dispose }: LruOptions<V>): Lru<V> {
  const slots = new LRUCache<string, Slot<V>>({
    maxSize: maxBytes,
    ...(dispose && { dispose: ({ value }, key) => dispose(value, key) }),
  })
  let hits = 0
  let misses = 0
  let additions = 0
  function add(key: string, value: V, size: number, noDisposeOnSet: boolean): void {
    additions += 1
    slots.set(key, { value, usedAt: additions }, { size, noDisposeOnSet })
  }
  return {
    get(key) {
      const slot = slots.peek(key)
      if (!slot) {
        misses += 1
        return undefined
      }
      hits += 1
      if (slot.usedAt !== additions) {
        slot.usedAt = additions
        slots.get(key)
      }
      return slot.value
    },
    set: (key, value, size) => add(key, value, size, false),
    grow(key, bytes) {
      const { size = 0, value } = slots.info(key) ?? {}
      // a new slot: the size of an object that is set again does not change
      if (value) add(key, value.value, size + bytes, true)
    },
    delete: (key) => slots.delete(key),
    clear: () => slots.clear(),
    get size() {
      return slots.size
    },
    get bytes() {
      return slots.calculatedSize
    },
    takeCounts() {
      const counts = { hits, misses }
      hits = 0
      misses = 0
      return counts
    },
  }
}
