import type { Context, Methods, PolicyServiceService, Positions } from '@overlay/rpc'
import { openCache } from './cache.js'
import { type Followed, follow, type Log } from './follow.js'
import type { Gauged } from './lru.js'
import { isAtLeast, latest, type WritePositions } from './write-positions.js'

/** What policy says about one identity: when its services last changed, and which view of them it has. */
export interface PolicyHeader {
  readonly identityId: string
  readonly lastChangeAtMs: number
  readonly contentKey: string
  readonly positions: Positions
  /** Told by a replica that had not caught up with the one that we hear: good for one answer. */
  readonly isBehind: boolean
}

export interface Headers extends AsyncDisposable {
  readonly gauged: Gauged
  of(identityId: string): PolicyHeader | Promise<PolicyHeader>
  /** Is it still what policy says? */
  current(header: PolicyHeader): boolean
  trusted(): boolean
}

export interface HeadersOptions {
  readonly policy: Pick<Methods<PolicyServiceService>, 'getHeader' | 'watchHeaders'>
  readonly writePositions: WritePositions
  readonly log: Log
  readonly context: () => Context
  readonly streamContext: (signal: AbortSignal) => Context
}

/** The schemas whose changes move a header. */
const SCHEMAS = ['identity', 'policy', 'sessions'] as const

export function openHeaders(options: HeadersOptions): Headers {
  const { policy, writePositions, log, context, streamContext } = options
  const cache = openCache<PolicyHeader>(
    32 << 20,
    ({ identityId }) => [identityId],
    ({ contentKey }) => contentKey.length + 300,
  )
  async function* open(signal: AbortSignal) {
    let listening = false
    for await (const message of policy.watchHeaders({}, streamContext(signal))) {
      if (!listening) cache.dropAll() // what was said before anybody listened is not known
      listening = true
      yield message
    }
  }
  const followed: Followed = follow('policy', log, open, ({ positions, identityIds, all }) => {
    if (all) cache.dropAll()
    for (const id of identityIds) cache.drop(id)
    for (const [schema, { timeline }] of Object.entries(followed.positions()))
      if (positions[schema] && positions[schema].timeline !== timeline) writePositions.ended(schema, timeline)
    return positions
  })

  function valid(header: PolicyHeader): boolean {
    if (header.isBehind || !followed.trusted()) return false
    const wanted = writePositions.positions()
    const heard = followed.positions()
    return SCHEMAS.every(
      (schema) =>
        isAtLeast(heard[schema], wanted[schema]) || isAtLeast(header.positions[schema], wanted[schema]),
    )
  }
  async function load(identityId: string): Promise<PolicyHeader> {
    const asking = context()
    const heard = followed.positions()
    const wanted = latest(asking.positions, heard)
    const { lastChangeAtMs, contentKey, positions } = await policy.getHeader(
      { identityId },
      { ...asking, positions: wanted },
    )
    const isBehind = !Object.entries(heard).every(([schema, position]) =>
      isAtLeast(positions[schema], position),
    )
    return { identityId, lastChangeAtMs, contentKey, positions, isBehind }
  }
  return {
    gauged: cache.gauged,
    of(identityId) {
      const known = cache.get(identityId)
      if (known && valid(known)) return known
      return cache.load(identityId, writePositions.positions(), () => load(identityId))
    },
    current: (header) => cache.get(header.identityId) === header && valid(header),
    trusted: followed.trusted,
    [Symbol.asyncDispose]: () => followed[Symbol.asyncDispose](),
  }
}
