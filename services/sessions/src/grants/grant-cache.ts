import type { Positions } from '@overlay/rpc'
import { LRUCache } from 'lru-cache'
import { GRANT_ENTRY_BYTES } from '../domain/limits.js'
import type { SessionRow } from '../store/insert-session.js'

/** The right to dial or bind a service, as policy has granted it. */
export interface Grant {
  readonly serviceName: string
  /** The policies that grant it. */
  readonly policyIds: readonly string[]
  readonly routerIds: readonly string[]
  /** As of these positions. */
  readonly positions: Positions
}

/** What is in memory of one identity. */
export interface Entry {
  readonly identityId: string
  /** By type and service. */
  readonly grants: Map<string, Grant>
  /** Sessions that exist, by API session, type and service. */
  readonly sessions: Map<string, SessionRow>
  /** Policy was asked for other grants than the first. */
  hasOthers: boolean
  bytes: number
}

/** Entries of identities, bounded by their size. The least recently used one leaves first. */
export interface Entries {
  get(identityId: string): Entry | undefined
  /** The entry of the identity, or a new one. */
  open(identityId: string): Entry
  /** Accounts for what was added to an entry, or removed from it. */
  grow(entry: Entry, bytes: number): void
  drop(identityId: string): void
  dropAll(): void
  readonly bytes: number
}

/** `onDrop` is called for each entry that leaves. */
export function openEntries(maxBytes: number, onDrop: (entry: Entry) => void): Entries {
  // an object of its own for each size: the cache measures only values that are new to it
  const cache = new LRUCache<string, { readonly entry: Entry }>({
    maxSize: maxBytes,
    sizeCalculation: ({ entry }) => entry.bytes,
    dispose: ({ entry }) => onDrop(entry),
    noDisposeOnSet: true,
  })
  return {
    get: (identityId) => cache.get(identityId)?.entry,
    open(identityId) {
      const found = cache.get(identityId)
      if (found) return found.entry
      const own = { grants: new Map(), sessions: new Map() }
      const entry = { identityId, ...own, hasOthers: false, bytes: GRANT_ENTRY_BYTES }
      cache.set(identityId, { entry })
      return entry
    },
    grow(entry, more) {
      if (cache.peek(entry.identityId)?.entry !== entry) return
      entry.bytes += more
      cache.set(entry.identityId, { entry })
    },
    drop: (identityId) => void cache.delete(identityId),
    dropAll: () => cache.clear(),
    get bytes() {
      return cache.calculatedSize
    },
  }
}
