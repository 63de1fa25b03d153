import type { Source } from '@overlay/platform/change-log'
import { Fault } from '@overlay/rpc'
import { isUpTo, type Noted, type Place, type Places } from '../domain/update-times.js'

const PULL_MS = 10_000

/** What happened while no replica noted it: all were down, or the one that stores crashed. */
export interface Missed {
  /** What may have moved times. */
  readonly noted: readonly Noted[]
  /** Identities that were deleted. */
  readonly gone: readonly string[]
}

/** Of identities it is known whom it may concern; a change of this schema is rare in such a gap and counts for everybody. */
export async function missedUpdates(identity: Source, from: Places, upto: Places): Promise<Missed> {
  const everybody = (schema: string, place: Place): Noted => ({ schema, place, atMs: Date.now(), ids: 'all' })
  const { policy, identity: identities } = from
  const noted: Noted[] = []
  if (policy && upto.policy && !isUpTo(upto.policy, policy)) noted.push(everybody('policy', upto.policy))
  if (!identities || !upto.identity || isUpTo(upto.identity, identities)) return { noted, gone: [] }
  const missed = await changedSince(identity, identities, upto.identity)
  return missed
    ? { noted: [...noted, ...missed.noted], gone: missed.gone }
    : { noted: [...noted, everybody('identity', upto.identity)], gone: [] }
}

/** Undefined: its owner has discarded these changes. */
async function changedSince(identity: Source, from: Place, upto: Place): Promise<Missed | undefined> {
  const noted = new Map<string, Noted>()
  const gone = new Set<string>()
  let at = from
  try {
    while (!isUpTo(upto, at)) {
      const message = await identity.pull(at, AbortSignal.timeout(PULL_MS), ['identities'])
      for (const { kind, id, json, atMs } of message.changes) {
        if (kind !== 'identities') continue
        if (json.length > 0) {
          noted.set(id, { schema: 'identity', place: upto, atMs, ids: [id] })
          continue
        }
        noted.delete(id)
        gone.add(id)
      }
      if (!message.upto || isUpTo(message.upto, at)) return undefined
      at = message.upto
    }
  } catch (err) {
    if (err instanceof Fault && err.code === 'OUT_OF_RANGE') return undefined
    throw err
  }
  return { noted: [...noted.values()], gone: [...gone] }
}
