import type { ListRequest } from '@overlay/rpc'
import { type Ready, ready } from '../http/answer.js'
import type { PolicyHeader } from './headers.js'
import { type Gauged, lru } from './lru.js'
import type { Session } from './session.js'

/** Ready answers by what they show, not by who asked: one buffer for all identities with the same view. */
export interface ServiceLists {
  readonly gauged: Gauged
  /** Null: such a list is not kept. */
  keyOf(header: PolicyHeader, session: Session, request: ListRequest): string | null
  get(key: string | null): Ready | undefined
  keep(key: string | null, body: Buffer): void
  grown(key: string | null, bytes: number): void
}

export function openServiceLists(maxBytes = 64 << 20): ServiceLists {
  const cache = lru<Ready>({ maxBytes })
  return {
    gauged: cache,
    keyOf({ contentKey }, { caller, isAdmin }, { query, perspective }) {
      if (contentKey === '' || perspective?.asIdentity) return null
      const { after: _, ...asked } = query ?? {}
      return JSON.stringify([
        contentKey,
        isAdmin,
        perspective?.hasConfigTypes ? perspective.configTypes : caller.configTypes,
        asked,
      ])
    },
    get: (key) => (key === null ? undefined : cache.get(key)),
    keep(key, body) {
      if (key !== null && body.length < maxBytes / 16)
        cache.set(key, ready(body), body.length + key.length + 200)
    },
    grown: (key, bytes) => {
      if (key !== null) cache.grow(key, bytes)
    },
  }
}
