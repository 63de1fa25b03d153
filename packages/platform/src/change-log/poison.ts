import { setTimeout as delay } from 'node:timers/promises'
import { type Change, Fault, type Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import { openLimit } from '../async/limit.js'
import { isAway } from '../postgres/database-failure.js'
import { metrics } from '../process/metrics.js'
import type { Source } from './source.js'

/** What to do about single changes that cannot be followed as they were told. All others must not wait for them. */
export interface Poison {
  /** The row as it is now, or as an unknown one; says so. Throws while the owner is away: then it is no matter of the row. */
  alone(change: Change, reason: unknown): Promise<Change>
  /** The change as one of an unknown row; says so. */
  unknown(change: Change, reason: unknown): Change
}

const UNKNOWN = Buffer.alloc(0)
const TRIES = 3
const PAUSE_MS = 100
const ROW_MS = 5000
const NOWHERE: Position = { timeline: '', number: 0 }

/** The row may be there, but nobody can say what it is. Not to be mistaken for one that is gone. */
export const isUnknown = ({ json }: Change): boolean => json === UNKNOWN

export function poisonOf(source: Source, log: Logger, stopping: AbortSignal): Poison {
  const { schema } = source
  const note = ({ kind, id, number }: Change, outcome: 'reloaded' | 'unknown', err: unknown): void => {
    metrics.followPoisonous.inc({ schema, kind, outcome })
    log.error({ err, schema, kind, id, number, outcome }, 'change not followed as it was told')
  }
  const unknown = (change: Change, reason: unknown): Change => {
    note(change, 'unknown', reason)
    return { ...change, json: UNKNOWN }
  }

  async function row({ kind, id }: Change): Promise<Buffer> {
    using limit = openLimit(ROW_MS, stopping)
    return source.row(kind, id, limit.signal)
  }

  /** Throws while it does not answer. */
  async function ownerAnswers(): Promise<void> {
    using limit = openLimit(ROW_MS, stopping)
    await source.pull(NOWHERE, limit.signal, []).catch((err: unknown) => {
      if (!(err instanceof Fault && err.code === 'OUT_OF_RANGE')) throw err
    })
  }

  return {
    unknown,
    async alone(change, reason) {
      for (let attempt = 1; ; attempt++) {
        try {
          const json = await row(change)
          note(change, 'reloaded', reason)
          return { ...change, json }
        } catch (err) {
          if (isAway(err)) await ownerAnswers()
          if (attempt === TRIES) return unknown(change, err)
          await delay(PAUSE_MS * attempt, undefined, { signal: stopping })
        }
      }
    },
  }
}
