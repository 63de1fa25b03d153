import type { Source } from '@overlay/platform'
import { Fault } from '@overlay/rpc'
import type { Noted, Place, Places } from '../domain/update-times.js'

const PULL_MS = 10_000

/**
 * What may have moved times while no replica noted it: all were down, or the one that stores crashed. Of identities
 * it is known whom it may concern; a change of this schema is rare in such a gap and counts for everybody.
 */
export async function missedUpdates(identity: Source, from: Places, upto: Places): Promise<readonly Noted[]> {
  const everybody = (schema: string, place: Place): Noted => ({ schema, place, atMs: Date.now(), ids: 'all' })
  const { policy, identity: identities } = from
  const noted: Noted[] = []
  if (policy && upto.policy && isBehind(policy, upto.policy)) noted.push(everybody('policy', upto.policy))
  if (identities && upto.identity && isBehind(identities, upto.identity)) {
    const changed = await changedSince(identity, identities, upto.identity)
    if (changed === 'all') noted.push(everybody('identity', upto.identity))
    else noted.push(...changed)
  }
  return noted
}

const isBehind = (at: Place, upto: Place): boolean => at.timeline !== upto.timeline || at.number < upto.number

async function changedSince(identity: Source, from: Place, upto: Place): Promise<readonly Noted[] | 'all'> {
  const noted: Noted[] = []
  let at = from
  try {
    while (isBehind(at, upto)) {
      const message = await identity.pull(at, AbortSignal.timeout(PULL_MS))
      for (const { kind, id, atMs } of message.changes)
        if (kind === 'identities') noted.push({ schema: 'identity', place: upto, atMs, ids: [id] })
      if (!message.upto || message.changes.length === 0) return 'all'
      at = message.upto
    }
    return noted
  } catch (err) {
    if (err instanceof Fault && err.code === 'OUT_OF_RANGE') return 'all'
    throw err
  }
}
