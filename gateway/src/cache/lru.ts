/** Bounded by entries and by bytes: what was not used for the longest time goes first. */
export interface Lru<V> {
  get(key: string): V | undefined
  set(key: string, value: V, bytes: number): void
  /** Says that a value now takes more room. */
  grow(key: string, bytes: number): void
  delete(key: string): boolean
  clear(): void
  readonly size: number
  readonly bytes: number
  /** Look-ups since the last time somebody asked. */
  takeCounts(): { readonly hits: number; readonly misses: number }
}

interface Slot<V> {
  readonly value: V
  bytes: number
}

/** What metrics tell of a cache. */
export type Gauged = Pick<Lru<unknown>, 'bytes' | 'takeCounts'>

export interface Limits<V> {
  readonly maxBytes: number
  readonly maxEntries?: number
  /** Told of every value that leaves. */
  readonly left?: (key: string, value: V) => void
}

export function lru<V>({ maxBytes, maxEntries = Number.POSITIVE_INFINITY, left }: Limits<V>): Lru<V> {
  const slots = new Map<string, Slot<V>>()
  let bytes = 0
  let hits = 0
  let misses = 0

  function remove(key: string, slot: Slot<V>): void {
    slots.delete(key)
    bytes -= slot.bytes
    left?.(key, slot.value)
  }
  function trim(): void {
    for (const [key, slot] of slots) {
      if (bytes <= maxBytes && slots.size <= maxEntries) return
      remove(key, slot)
    }
  }
  return {
    get(key) {
      const slot = slots.get(key)
      if (slot === undefined) {
        misses += 1
        return undefined
      }
      hits += 1
      slots.delete(key)
      slots.set(key, slot)
      return slot.value
    },
    set(key, value, size) {
      const old = slots.get(key)
      if (old) remove(key, old)
      slots.set(key, { value, bytes: size })
      bytes += size
      trim()
    },
    grow(key, size) {
      const slot = slots.get(key)
      if (!slot) return
      slot.bytes += size
      bytes += size
      trim()
    },
    delete(key) {
      const slot = slots.get(key)
      if (slot) remove(key, slot)
      return slot !== undefined
    },
    clear() {
      for (const [key, slot] of [...slots]) remove(key, slot)
    },
    get size() {
      return slots.size
    },
    get bytes() {
      return bytes
    },
    takeCounts() {
      const counts = { hits, misses }
      hits = 0
      misses = 0
      return counts
    },
  }
}
