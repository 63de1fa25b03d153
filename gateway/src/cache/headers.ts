import {
  type Context,
  type Methods,
  ownContext,
  type PolicyServiceService,
  type Positions,
} from '@overlay/rpc'
import { type Followed, type FollowLog, followStream, isAtLeast, latest } from '@overlay/store/change-log'
import { HEADER_CACHE_BYTES } from '../limits.js'
import { type Gauged, openCache } from './cache.js'
import type { WritePositions } from './write-positions.js'

/** The time of the last change of one identity's services, and the key of its view of them, as of policy. */
export interface PolicyHeader {
  readonly identityId: string
  readonly lastChangeAtMs: number
  readonly contentKey: string
  readonly positions: Positions
  /** From a replica that is behind the stream: valid for one answer. */
  readonly isBehind: boolean
}

export interface Headers extends AsyncDisposable {
  readonly gauged: Gauged
  of(identityId: string): PolicyHeader | Promise<PolicyHeader>
  /** True while the header is valid. */
  current(header: PolicyHeader): boolean
  isHeard(): boolean
}

export interface HeadersOptions {
  readonly policy: Pick<Methods<PolicyServiceService>, 'getHeader' | 'watchHeaders'>
  readonly writePositions: WritePositions
  readonly log: FollowLog
  readonly context: () => Context
}

/** The schemas whose changes move a header. */
const SCHEMAS = ['identity', 'policy', 'sessions'] as const

export function openHeaders(options: HeadersOptions): Headers {
  const { policy, writePositions, log, context } = options
  const cache = openCache<PolicyHeader>(
    HEADER_CACHE_BYTES,
    ({ identityId }) => [identityId],
    ({ contentKey }) => contentKey.length + 300,
  )
  async function* open(signal: AbortSignal) {
    let listening = false
    for await (const message of policy.watchHeaders({ grants: false }, ownContext(signal))) {
      if (!listening) cache.dropAll() // earlier notices were missed
      listening = true
      yield message
    }
  }
  const followed: Followed = followStream(
    'policy',
    log,
    open,
    ({ positions, identityIds, all }) => {
      if (all) cache.dropAll()
      for (const id of identityIds) cache.drop(id)
      for (const [schema, { timeline }] of Object.entries(followed.positions()))
        if (positions[schema] && positions[schema].timeline !== timeline)
          writePositions.forget(schema, timeline)
      return positions
    },
    ({ ageMs }) => ageMs,
  )

  function isValid(header: PolicyHeader): boolean {
    if (header.isBehind || !followed.isFresh()) return false
    const written = writePositions.withoutAdditions()
    const received = followed.positions()
    return SCHEMAS.every(
      (schema) =>
        isAtLeast(received[schema], written[schema]) || isAtLeast(header.positions[schema], written[schema]),
    )
  }
  async function load(identityId: string): Promise<PolicyHeader> {
    const callContext = context()
    const received = followed.positions()
    const least = latest(callContext.positions, received)
    const { lastChangeAtMs, contentKey, positions } = await policy.getHeader(
      { identityId },
      { ...callContext, positions: least },
    )
    const isBehind = !Object.entries(received).every(([schema, position]) =>
      isAtLeast(positions[schema], position),
    )
    return { identityId, lastChangeAtMs, contentKey, positions, isBehind }
  }
  return {
    gauged: cache.gauged,
    of(identityId) {
      const cached = cache.get(identityId)
      if (cached && isValid(cached)) return cached
      return cache.load(identityId, writePositions.withoutAdditions(), () => load(identityId))
    },
    current: (header) => cache.get(header.identityId) === header && isValid(header),
    isHeard: followed.isHeard,
    [Symbol.asyncDispose]: () => followed[Symbol.asyncDispose](),
  }
}
