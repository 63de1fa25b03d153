import { runPeriodically } from '@overlay/platform/async'
import type { ChangeLog } from '@overlay/platform/change-log'
import { ownContext } from '@overlay/rpc'
import { lapsedBetween } from '../domain/posture/lapses.js'
import { tellLapsed } from '../store/posture-data.js'
import type { Engine } from './engine.js'

const TICK_MS = 5000
/** Whoever is asked afterwards judges by its own clock, which may be late by less than this. */
const SKEW_MS = 2000
/** Looked at once more: a check may have come here later than a time that it asks for. What was told is not told again. */
const OVERLAP_MS = 10_000
const AT_ONCE = 500

/**
 * Codes of second factors end by time, and so may sessions: followers hear of it as if the endpoint had said something.
 * All replicas look, the first one tells.
 */
export function startTellingLapses(changeLog: ChangeLog, engine: Lapsing): AsyncDisposable {
  let from = 0 // what lapsed while nobody looked is told now, unless it was told
  let failing = false

  const look = async (): Promise<void> => {
    if (!engine.trusted()) return // it may not have loaded what was said
    try {
      const to = Date.now() - SKEW_MS
      await tellBetween(changeLog, engine, from, to)
      from = to - OVERLAP_MS
      failing = false
    } catch (err) {
      if (!failing) changeLog.log.warn({ err }, 'lapsed second factors not told')
      failing = true
    }
  }
  return runPeriodically(TICK_MS, look)
}

type Lapsing = Pick<Engine, 'state' | 'trusted'>

/** In the order of identities, as others lock them. */
export async function tellBetween(
  changeLog: ChangeLog,
  { state }: Pick<Engine, 'state'>,
  from: number,
  to: number,
): Promise<void> {
  const lapsed = [...lapsedBetween(state, from, to)].sort(([a], [b]) => (a < b ? -1 : 1))
  for (let at = 0; at < lapsed.length; at += AT_ONCE) {
    const context = { ...ownContext(new AbortController().signal), deadline: new Date(Date.now() + TICK_MS) }
    await changeLog.write(context, async (tx) => ({
      result: undefined,
      changes: await tellLapsed(tx, new Map(lapsed.slice(at, at + AT_ONCE))),
    }))
  }
}
