import { LRUCache } from 'lru-cache'
import { MAX_LOADS } from '../limits.js'

/**
 * Values of other services: loaded on a miss, one load at a time for each key, dropped by tag.
 * A drop during a load wins: the loaded value is not kept.
 */
export interface Cache<V> {
  get(key: string): V | undefined
  /** A caller with another `version` does not share a load that is under way. */
  load(key: string, version: unknown, fetch: () => Promise<V>): Promise<V>
  set(key: string, value: V): void
  drop(tag: string): void
  dropAll(): void
  readonly size: number
  readonly gauged: Gauged
}

interface Flight<V> {
  readonly version: unknown
  readonly dropped: Set<string>
  all: boolean
  promise: Promise<V> | undefined
}

export function openCache<V extends object>(
  maxBytes: number,
  tagsOf: (value: V) => readonly string[],
  bytesOf: (value: V) => number,
): Cache<V> {
  const keysByTag = new Map<string, Set<string>>()
  const inFlight = new Set<Flight<V>>()
  const latest = new Map<string, Flight<V>>()
  const values = lru<V>(maxBytes, (value, key) => {
    for (const tag of tagsOf(value)) {
      const keys = keysByTag.get(tag)
      keys?.delete(key)
      if (keys?.size === 0) keysByTag.delete(tag)
    }
  })

  function set(key: string, value: V): void {
    values.set(key, value, bytesOf(value))
    for (const tag of tagsOf(value)) {
      const keys = keysByTag.get(tag)
      if (keys) keys.add(key)
      else keysByTag.set(tag, new Set([key]))
    }
  }

  async function run(key: string, flight: Flight<V>, fetch: () => Promise<V>): Promise<V> {
    inFlight.add(flight)
    try {
      for (let attempt = 1; ; attempt++) {
        flight.dropped.clear()
        flight.all = false
        const value = await fetch()
        const outdated = flight.all || tagsOf(value).some((tag) => flight.dropped.has(tag))
        if (!outdated) set(key, value)
        if (!outdated || attempt === MAX_LOADS) return value
      }
    } finally {
      inFlight.delete(flight)
      if (latest.get(key) === flight) latest.delete(key)
    }
  }

  return {
    get: values.get,
    set,
    load(key, version, fetch) {
      const shared = latest.get(key)
      if (shared?.promise && shared.version === version && !shared.all && shared.dropped.size === 0)
        return shared.promise
      const flight: Flight<V> = { version, dropped: new Set(), all: false, promise: undefined }
      latest.set(key, flight)
      flight.promise = run(key, flight, fetch)
      return flight.promise
    },
    drop(tag) {
      for (const flight of inFlight) flight.dropped.add(tag)
      for (const key of [...(keysByTag.get(tag) ?? [])]) values.delete(key)
    },
    dropAll() {
      for (const flight of inFlight) flight.all = true
      values.clear()
    },
    get size() {
      return values.size
    },
    gauged: values,
  }
}

/** Bounded by bytes: evicts the least recently used value first. Counts lookups for the metrics. */
export interface Lru<V> {
  get(key: string): V | undefined
  set(key: string, value: V, bytes: number): void
  delete(key: string): boolean
  clear(): void
  readonly size: number
  readonly bytes: number
  /** Lookups since the last call. */
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
