import type { ListRequest } from '@overlay/rpc'
import { type PreparedBody, prepareBody } from '../http/send.js'
import type { Session } from '../http/session.js'
import { LIST_CACHE_BYTES } from '../limits.js'
import { type Gauged, lru } from './cache.js'
import type { PolicyHeader } from './headers.js'

/** Lists of services by their content: all identities with the same view share one body. */
export interface ServiceLists {
  readonly gauged: Gauged
  /** Null: the list is not cached. */
  keyOf(header: PolicyHeader, session: Session, request: ListRequest): string | null
  get(key: string | null): PreparedBody | undefined
  set(key: string | null, body: string | Buffer): void
}

export function openServiceLists(maxBytes = LIST_CACHE_BYTES): ServiceLists {
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
