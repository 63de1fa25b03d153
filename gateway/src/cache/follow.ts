import {
  type Changes as ChangesMessage,
  Fault,
  ownContext,
  type Position,
  type Positions,
} from '@overlay/rpc'
import { type Followed, type FollowLog, followStream } from '@overlay/store/change-log'
import type { Changes } from '../clients/services.js'
import { GATHER_MS } from '../limits.js'
import type { WritePositions } from './write-positions.js'

/**
 * Follows the changes of rows of `effects.kinds`. `restart` drops all cached values of the service. Both get the position
 * that reads must have reached to see the changes.
 */
export function followChanges(
  schema: string,
  owner: Changes,
  log: FollowLog,
  writePositions: WritePositions,
  effects: {
    readonly kinds: readonly string[]
    apply(changes: ChangesMessage['changes'], seen: Positions): void
    restart(seen: Positions): void
  },
): Followed {
  let at: Position | undefined
  let timeline: string | undefined

  async function* open(signal: AbortSignal): AsyncGenerator<ChangesMessage> {
    const context = ownContext(signal)
    if (!at) {
      const head = await owner.head({}, context)
      effects.restart({ [schema]: head })
      if (timeline !== undefined && timeline !== head.timeline) writePositions.forget(schema, timeline)
      timeline = head.timeline
      at = head
      yield { upto: at, changes: [], more: false, after: undefined, ageMs: 0 }
    }
    try {
      yield* owner.watch({ after: at, gatherMs: GATHER_MS, kinds: [...effects.kinds] }, context)
    } catch (err) {
      if (err instanceof Fault && err.code === 'OUT_OF_RANGE') at = undefined
      throw err
    }
  }
  const hear = ({ upto, changes, more }: ChangesMessage): Positions | null => {
    const next = upto ?? at
    const seen = next ? { [schema]: next } : {}
    at = undefined // until the message is applied: what fails half leads to a restart
    if (changes.length > 0) effects.apply(changes, seen)
    at = next
    return at && !more ? { [schema]: at } : null
  }
  return followStream(schema, log, open, hear, ({ ageMs }) => ageMs)
}
