import { Fault } from '@overlay/rpc'
import type { Source } from '@overlay/store/change-log'
import { isUpTo, type Position, type Positions, type TimeUpdate } from '../domain/update-times.js'
import { PULL_MS } from '../limits.js'

/** What happened while no replica stored service-updates times: all were down, or the one that stores crashed. */
export interface MissedUpdates {
  /** The changes that may have moved times. */
  readonly updates: readonly TimeUpdate[]
  /** Identities that were deleted. */
  readonly deletedIds: readonly string[]
}

/**
 * The changes between two positions. A change of identity names the identity that it may concern; one of this schema, rare
 * in such a gap, counts for all identities.
 */
export async function missedUpdates(
  identitySource: Source,
  from: Positions,
  upto: Positions,
): Promise<MissedUpdates> {
  const forAll = (schema: string, position: Position): TimeUpdate => {
    return { schema, position, atMs: Date.now(), ids: 'all' }
  }
  const updates: TimeUpdate[] = []
  if (from.policy && upto.policy && !isUpTo(upto.policy, from.policy))
    updates.push(forAll('policy', upto.policy))
  if (!from.identity || !upto.identity || isUpTo(upto.identity, from.identity))
    return { updates, deletedIds: [] }
  const missed = await changedBetween(identitySource, from.identity, upto.identity)
  return missed
    ? { updates: [...updates, ...missed.updates], deletedIds: missed.deletedIds }
    : { updates: [...updates, forAll('identity', upto.identity)], deletedIds: [] }
}

/** Undefined: the owner has discarded these changes. */
async function changedBetween(
  source: Source,
  from: Position,
  upto: Position,
): Promise<MissedUpdates | undefined> {
  const updates = new Map<string, TimeUpdate>()
  const deletedIds = new Set<string>()
  let at = from
  try {
    while (!isUpTo(upto, at)) {
      const message = await source.pull(at, AbortSignal.timeout(PULL_MS), ['identities'])
      for (const { kind, id, json, atMs } of message.changes) {
        if (kind !== 'identities') continue
        if (json.length > 0) {
          updates.set(id, { schema: 'identity', position: upto, atMs, ids: [id] })
          continue
        }
        updates.delete(id)
        deletedIds.add(id)
      }
      if (!message.upto || isUpTo(message.upto, at)) return undefined
      at = message.upto
    }
  } catch (err) {
    if (err instanceof Fault && err.code === 'OUT_OF_RANGE') return undefined
    throw err
  }
  return { updates: [...updates.values()], deletedIds: [...deletedIds] }
}
