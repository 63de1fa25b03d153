import type { ListRequest } from '@overlay/rpc'
import { type PreparedBody, prepareBody } from '../http/send.js'
import type { Session } from '../http/session.js'
import type { PolicyHeader } from './headers.js'
import { type Gauged, lru } from './lru.js'

/** Lists of services by their content: all identities with the same view share one body. */
export interface ServiceLists {
  readonly gauged: Gauged
  /** Null: the list is not cached. */
  keyOf(header: PolicyHeader, session: Session, request: ListRequest): string | null
  get(key: string | null): PreparedBody | undefined
  set(key: string | null, body: Buffer): void
}

export function openServiceLists(maxBytes = 64 << 20): ServiceLists {
  const cache = lru<PreparedBody>(maxBytes)
  return {
    gauged: cache,
    keyOf({ contentKey }, { caller, isAdmin }, { query, perspective }) {
      if (contentKey === '' || perspective?.asIdentity) return null
      const { after: _, ...filter } = query ?? {}
      return JSON.stringify([
        contentKey,
        isAdmin,
        perspective?.hasConfigTypes ? perspective.configTypes : caller.configTypes,
        filter,
      ])
    },
    get: (key) => (key === null ? undefined : cache.get(key)),
    set(key, body) {
      if (key !== null && body.length < maxBytes / 16)
        cache.set(key, prepareBody(body), 2 * body.length + key.length + 200) // its compressed form, too
    },
  }
}
