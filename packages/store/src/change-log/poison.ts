import { setTimeout as delay } from 'node:timers/promises'
import { metrics } from '@overlay/process'
import { openLimit } from '@overlay/process/async'
import { type Change, Fault, type Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import { ROW_MS, ROW_PAUSE_MS, ROW_TRIES } from '../limits.js'
import { isAway } from '../postgres/database-failure.js'
import type { Source } from './source.js'

/** Replaces single changes that cannot be followed as they were sent, so that the others need not wait. */
export interface Poison {
  /** The change with its row as it is now, or else as unknown. Throws while the owner is unavailable. */
  reload(change: Change, reason: unknown): Promise<Change>
  /** The change with an unknown row. */
  unknown(change: Change, reason: unknown): Change
}

const UNKNOWN = Buffer.alloc(0)
const NOWHERE: Position = { timeline: '', number: 0 }

/** True when the row may exist but cannot be read. It is not deleted. */
export const isUnknown = ({ json }: Change): boolean => json === UNKNOWN

export function poisonOf(source: Source, log: Logger, stop: AbortSignal): Poison {
  const { schema } = source
  const report = ({ kind, id, number }: Change, outcome: 'reloaded' | 'unknown', err: unknown): void => {
    metrics.followPoisonous.inc({ schema, kind, outcome })
    log.error({ err, schema, kind, id, number, outcome }, 'change not followed as it was sent')
  }
  const unknown = (change: Change, reason: unknown): Change => {
    report(change, 'unknown', reason)
    return { ...change, json: UNKNOWN }
  }

  async function row({ kind, id }: Change): Promise<Buffer> {
    using limit = openLimit(ROW_MS, stop)
    return source.row(kind, id, limit.signal)
  }

  /** Throws while the owner does not answer. */
  async function pingOwner(): Promise<void> {
    using limit = openLimit(ROW_MS, stop)
    await source.pull(NOWHERE, limit.signal, []).catch((err: unknown) => {
      if (!(err instanceof Fault && err.code === 'OUT_OF_RANGE')) throw err
    })
  }

  return {
    unknown,
    async reload(change, reason) {
      for (let attempt = 1; ; attempt++) {
        try {
          const json = await row(change)
          report(change, 'reloaded', reason)
          return { ...change, json }
        } catch (err) {
          if (isAway(err)) await pingOwner()
          if (attempt === ROW_TRIES) return unknown(change, err)
          await delay(ROW_PAUSE_MS * attempt, undefined, { signal: stop })
        }
      }
    },
  }
}
