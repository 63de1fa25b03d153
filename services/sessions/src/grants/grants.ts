import { metrics } from '@overlay/process'
import {
  Access,
  type Context,
  type Methods,
  type PolicyServiceService,
  type Position,
  type Positions,
} from '@overlay/rpc'
import { isAtLeast, latest } from '@overlay/store/change-log'
import { LRUCache } from 'lru-cache'
import { GRANT_ENTRY_BYTES, GRANTS_BYTES } from '../limits.js'
import type { GrantWatch } from './watch-grants.js'

/** The right to dial or bind a service, as policy has granted it. */
export interface Grant {
  readonly serviceName: string
  /** The policies that grant it. */
  readonly policyIds: readonly string[]
  readonly routerIds: readonly string[]
  /** As of these positions. */
  readonly positions: Positions
  /** Only if the routers of the session evaluate the checks of the device. Then it is for one API session. */
  readonly postureAtRouters: boolean
}

/** An access of an API session. */
export interface AccessQuestion {
  readonly identityId: string
  readonly apiSessionId: string
  readonly serviceId: string
  readonly type: 'Dial' | 'Bind'
  readonly isAdmin: boolean
  /** The client reports its device to the routers that evaluate it. */
  readonly hasAccessToken: boolean
}

/** The answers of policy, in memory while they hold. */
export interface Grants {
  /** A grant in memory that holds, and contains the writes at these positions. */
  find(question: AccessQuestion, written: Positions): Grant | undefined
  /** Asks policy. Refusals are those of policy. */
  ask(question: AccessQuestion, context: Context): Promise<Grant>
  /** A change that can revoke access is about to be recorded: older grants are no longer valid. */
  revoked(schema: string, at: Position): void
  readonly bytes: number
}

/** The schemas whose changes change grants. */
const SCHEMAS = ['identity', 'policy', 'sessions'] as const

const accesses = { Dial: Access.ACCESS_DIAL, Bind: Access.ACCESS_BIND } as const
const keyOf = ({ type, serviceId }: Pick<AccessQuestion, 'type' | 'serviceId'>) => `${type} ${serviceId}`

/** A question that policy is asked now. */
interface Flight {
  readonly identityId: string
  isDropped: boolean
}

/**
 * A grant is valid while the stream of policy is fresh and has not named its identity. The positions of a grant are those
 * of its evaluation and do not change: whatever is created by it is compared with all revocations since then.
 */
export function openGrants(
  policy: Pick<Methods<PolicyServiceService>, 'authorize'>,
  watch: Omit<GrantWatch, keyof AsyncDisposable>,
  maxBytes = GRANTS_BYTES,
): Grants {
  /** By identity, then by type and service. */
  const cache = new LRUCache<string, ReadonlyMap<string, Grant>>({
    maxSize: maxBytes,
    sizeCalculation: (grants) =>
      [...grants.values()].reduce((sum, grant) => sum + bytesOf(grant), GRANT_ENTRY_BYTES),
  })
  const flights = new Set<Flight>()
  const revocations: Record<string, Position> = {}
  const requests = { hit: 0, miss: 0 }

  watch.onChange((ids) => {
    for (const flight of flights)
      if (ids === 'all' || ids.includes(flight.identityId)) flight.isDropped = true
    if (ids === 'all') cache.clear()
    else for (const id of ids) cache.delete(id)
  })
  watch.onMessage(() => {
    for (const result of ['hit', 'miss'] as const) {
      metrics.cacheRequests.inc({ cache: 'grants', result }, requests[result])
      requests[result] = 0
    }
    metrics.cacheBytes.set({ cache: 'grants' }, cache.calculatedSize)
  })
  const hasReached = (at: Positions, written: Positions): boolean =>
    SCHEMAS.every(
      (schema) => isAtLeast(at[schema], written[schema]) && isAtLeast(at[schema], revocations[schema]),
    )

  return {
    get bytes() {
      return cache.calculatedSize
    },
    revoked(schema, at) {
      revocations[schema] = at
    },
    find(question, written) {
      const grant = watch.isFresh() ? cache.get(question.identityId)?.get(keyOf(question)) : undefined
      const isValid =
        grant !== undefined &&
        (hasReached(watch.positions(), written) || hasReached(grant.positions, written))
      requests[isValid ? 'hit' : 'miss']++
      return isValid ? grant : undefined
    },
    async ask({ identityId, apiSessionId, serviceId, type, isAdmin, hasAccessToken }, context) {
      const received = watch.isFresh() ? watch.positions() : undefined
      const flight: Flight = { identityId, isDropped: false }
      flights.add(flight)
      try {
        const { lasts, ...grant } = await policy.authorize(
          {
            identityId,
            apiSessionId,
            serviceId,
            access: accesses[type],
            isAdmin,
            postureAtRouters: hasAccessToken,
          },
          received ? { ...context, positions: latest(context.positions, received) } : context,
        )
        // a replica that is behind the stream may have answered
        const isBehind =
          !received || SCHEMAS.some((schema) => !isAtLeast(grant.positions[schema], received[schema]))
        if (lasts && !isBehind && !flight.isDropped)
          // a new map: the cache measures only values that are new to it
          cache.set(identityId, new Map(cache.get(identityId)).set(keyOf({ type, serviceId }), grant))
        return grant
      } finally {
        flights.delete(flight)
      }
    },
  }
}

const bytesOf = ({ serviceName, policyIds, routerIds }: Grant): number =>
  300 + serviceName.length + 60 * policyIds.length + 60 * routerIds.length
