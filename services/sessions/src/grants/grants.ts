import { metrics } from '@overlay/process'
import {
  Access,
  type AuthorizeResponse,
  type Context,
  type Methods,
  type PolicyServiceService,
  type Position,
  type Positions,
} from '@overlay/rpc'
import { isAtLeast, latest } from '@overlay/store/change-log'
import { GRANTS_BYTES } from '../domain/limits.js'
import { type Entries, type Grant, openEntries } from './grant-cache.js'
import type { GrantWatch } from './watch-grants.js'

/** An access of an API session. */
export interface AccessQuestion {
  readonly identityId: string
  readonly apiSessionId: string
  readonly serviceId: string
  readonly type: 'Dial' | 'Bind'
  readonly isAdmin: boolean
}

/** The answers of policy, in memory while they hold. */
export interface Grants {
  /** A grant in memory that holds, and contains the writes at these positions. */
  find(question: AccessQuestion, written: Positions): Grant | undefined
  /** Asks policy. Refusals are those of policy. */
  ask(question: AccessQuestion, context: Context): Promise<Grant>
  /** A change that can revoke access is about to be recorded: older grants are no longer valid. */
  revoked(schema: string, at: Position): void
  readonly entries: Entries
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
  { maxBytes = GRANTS_BYTES, onDrop = () => undefined }: GrantOptions = {},
): Grants {
  const entries = openEntries(maxBytes, onDrop)
  const flights = new Set<Flight>()
  const revocations: Record<string, Position> = {}
  const requests = { hit: 0, miss: 0 }

  watch.onChange((ids) => {
    for (const flight of flights)
      if (ids === 'all' || ids.includes(flight.identityId)) flight.isDropped = true
    if (ids === 'all') entries.dropAll()
    else for (const id of ids) entries.drop(id)
  })
  watch.onMessage(() => {
    for (const result of ['hit', 'miss'] as const) {
      metrics.cacheRequests.inc({ cache: 'grants', result }, requests[result])
      requests[result] = 0
    }
    metrics.cacheBytes.set({ cache: 'grants' }, entries.bytes)
  })
  const hasReached = (at: Positions, written: Positions): boolean =>
    SCHEMAS.every(
      (schema) => isAtLeast(at[schema], written[schema]) && isAtLeast(at[schema], revocations[schema]),
    )

  function keep(identityId: string, answer: AuthorizeResponse, key: string, grant: Grant): void {
    const entry = entries.open(identityId)
    const put = (key: string, grant: Grant): void => {
      if (!entry.grants.has(key)) entries.grow(entry, bytesOf(grant))
      entry.grants.set(key, grant)
    }
    put(key, grant)
    const routers = sharedLists()
    for (const { serviceId, access, serviceName, policyIds, routerIds } of answer.others) {
      const type = access === accesses.Dial ? 'Dial' : 'Bind'
      const { positions } = grant
      put(keyOf({ type, serviceId }), { serviceName, policyIds, routerIds: routers(routerIds), positions })
    }
  }

  return {
    entries,
    revoked(schema, at) {
      revocations[schema] = at
    },
    find(question, written) {
      const grant = watch.isFresh()
        ? entries.get(question.identityId)?.grants.get(keyOf(question))
        : undefined
      const isValid =
        grant !== undefined &&
        (hasReached(watch.positions(), written) || hasReached(grant.positions, written))
      requests[isValid ? 'hit' : 'miss']++
      return isValid ? grant : undefined
    },
    async ask({ identityId, apiSessionId, serviceId, type, isAdmin }, context) {
      const received = watch.isFresh() ? watch.positions() : undefined
      const entry = entries.get(identityId)
      const withOthers = received !== undefined && entry?.hasOthers === false // many have one session only
      if (entry && withOthers) entry.hasOthers = true
      const flight = { identityId, isDropped: false }
      flights.add(flight)
      try {
        const answer = await policy.authorize(
          { identityId, apiSessionId, serviceId, access: accesses[type], isAdmin, withOthers },
          received ? { ...context, positions: latest(context.positions, received) } : context,
        )
        const { serviceName, policyIds, routerIds, positions } = answer
        const grant = { serviceName, policyIds, routerIds, positions }
        // a replica that is behind the stream may have answered
        const isBehind =
          !received || SCHEMAS.some((schema) => !isAtLeast(positions[schema], received[schema]))
        if (answer.lasts && !isBehind && !flight.isDropped)
          keep(identityId, answer, keyOf({ type, serviceId }), grant)
        else if (entry && withOthers) entry.hasOthers = false
        return grant
      } finally {
        flights.delete(flight)
      }
    },
  }
}

export interface GrantOptions {
  readonly maxBytes?: number
  readonly onDrop?: Parameters<typeof openEntries>[1]
}

/** Equal lists of one answer take room once. */
function sharedLists(): (list: readonly string[]) => readonly string[] {
  const lists = new Map<string, readonly string[]>()
  return (list) => {
    const key = list.join()
    const shared = lists.get(key) ?? list
    lists.set(key, shared)
    return shared
  }
}

const bytesOf = ({ serviceName, policyIds, routerIds }: Grant): number =>
  300 + serviceName.length + 60 * policyIds.length + 8 * routerIds.length
