import { runPeriodically } from '@overlay/platform/async'
import { type ChangeLog, writeChanges } from '@overlay/platform/change-log'
import { ownContext } from '@overlay/rpc'
import { lapsedBetween } from '../domain/posture/lapses.js'
import { touchLapsed } from '../store/posture-data.js'
import type { Engine } from './engine.js'

const TICK_MS = 5000
/** Readers of the report judge by their own clocks, which may be behind by less than this. */
const SKEW_MS = 2000
/** Reported times overlap: a check may reach this replica after a time at which it lapses. A lapse is reported once. */
const OVERLAP_MS = 10_000
const ROWS_AT_ONCE = 500

/**
 * The second factor lapses by time, and sessions with it. The change log reports that as a change of posture, so that
 * followers look again. All replicas look for lapses; the first one reports each.
 */
export function startReportingLapses(
  changeLog: ChangeLog,
  engine: Pick<Engine, 'state' | 'isFresh'>,
): AsyncDisposable {
  let from = 0 // reports lapses from before the start too, unless they were reported
  let failing = false

  const look = async (): Promise<void> => {
    if (!engine.isFresh()) return // posture may not be loaded
    try {
      const to = Date.now() - SKEW_MS
      await reportLapses(changeLog, engine, from, to)
      from = to - OVERLAP_MS
      failing = false
    } catch (err) {
      if (!failing) changeLog.log.warn({ err }, 'lapsed second factors not told')
      failing = true
    }
  }
  return runPeriodically(TICK_MS, look)
}

/** In the order of identities, in which others lock them. */
export async function reportLapses(
  changeLog: ChangeLog,
  { state }: Pick<Engine, 'state'>,
  from: number,
  to: number,
): Promise<void> {
  const lapsed = [...lapsedBetween(state, from, to)].sort(([a], [b]) => (a < b ? -1 : 1))
  for (let i = 0; i < lapsed.length; i += ROWS_AT_ONCE) {
    const context = { ...ownContext(new AbortController().signal), deadline: new Date(Date.now() + TICK_MS) }
    const page = new Map(lapsed.slice(i, i + ROWS_AT_ONCE))
    await writeChanges(changeLog, context, (tx) => touchLapsed(tx, page))
  }
}
