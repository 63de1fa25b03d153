import { LRUCache } from 'lru-cache'

/** Bounded by bytes: evicts the least recently used value first. Counts look-ups for the metrics. */
export interface Lru<V> {
  get(key: string): V | undefined
  set(key: string, value: V, bytes: number): void
  delete(key: string): boolean
  clear(): void
  readonly size: number
  readonly bytes: number
  /** Look-ups since the last call. */
  takeCounts(): { readonly hits: number; readonly misses: number }
}

/** What the metrics read of a cache. */
export type Gauged = Pick<Lru<unknown>, 'bytes' | 'takeCounts'>

/** @param dispose runs for every value that leaves, replaced ones included */
export function lru<V extends object>(maxBytes: number, dispose?: (value: V, key: string) => void): Lru<V> {
  const values = new LRUCache<string, V>({ maxSize: maxBytes, ...(dispose && { dispose }) })
  let counts = { hits: 0, misses: 0 }
  return {
    get(key) {
      const value = values.get(key)
      counts[value ? 'hits' : 'misses'] += 1
      return value
    },
    set: (key, value, size) => void values.set(key, value, { size }),
    delete: (key) => values.delete(key),
    clear: () => values.clear(),
    get size() {
      return values.size
    },
    get bytes() {
      return values.calculatedSize
    },
    takeCounts() {
      const taken = counts
      counts = { hits: 0, misses: 0 }
      return taken
    },
  }
}
