import type { Positions } from '@overlay/rpc'
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
  /** The number of entries that had been opened at its last use. */
  usedAt: number
}

/**
 * Entries of identities, bounded by their size: the least recently used one leaves first, where the first use after each
 * new entry counts. Moving an entry at each use would cost more than the look-up.
 */
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
  const entries = new Map<string, Entry>() // least recently used first
  let bytes = 0
  let opened = 0

  function remove(entry: Entry): void {
    entries.delete(entry.identityId)
    bytes -= entry.bytes
    onDrop(entry)
  }
  function get(identityId: string): Entry | undefined {
    const entry = entries.get(identityId)
    if (!entry || entry.usedAt === opened) return entry
    entry.usedAt = opened
    entries.delete(identityId)
    entries.set(identityId, entry)
    return entry
  }
  function grow(entry: Entry, more: number): void {
    if (entries.get(entry.identityId) !== entry) return
    entry.bytes += more
    bytes += more
    for (const oldest of entries.values()) {
      if (bytes <= maxBytes) return
      remove(oldest)
    }
  }
  return {
    get,
    open(identityId) {
      const found = get(identityId)
      if (found) return found
      opened += 1
      const own = { grants: new Map(), sessions: new Map() }
      const entry = { identityId, ...own, hasOthers: false, bytes: 0, usedAt: opened }
      entries.set(identityId, entry)
      grow(entry, ENTRY_BYTES)
      return entry
    },
    grow,
    drop(identityId) {
      const entry = entries.get(identityId)
      if (entry) remove(entry)
    },
    dropAll() {
      for (const entry of entries.values()) onDrop(entry)
      entries.clear()
      bytes = 0
    },
    get bytes() {
      return bytes
    },
  }
}

const ENTRY_BYTES = 500
