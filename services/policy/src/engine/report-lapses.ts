import { openAlarm, openBackoff, openOutage, yielder } from '@overlay/process/async'
import { ownContext } from '@overlay/rpc'
import type { ChangeLog } from '@overlay/store/change-log'
import { writeChanges } from '@overlay/store/change-log'
import { lastLapse, mfaTimings, nextLapse } from '../domain/authorization/mfa-lapses.js'
import type { MfaCheck } from '../domain/posture/mfa-check.js'
import type { State } from '../domain/state.js'
import { LAPSE_GATHER_MS, LAPSE_PAUSES, LAPSE_WRITE_MS, LAPSES_AT_ONCE, LONGEST_SLEEP_MS } from '../limits.js'
import { touchLapsed } from '../store/posture-data.js'
import { openDeadlines } from './deadlines.js'
import type { Engine } from './engine.js'

/** For tests. */
export interface LapseClock {
  now(): number
  readonly alarm: ReturnType<typeof openAlarm>
}

/**
 * The second factor lapses by time, and sessions with it. At the time of a lapse, the change log reports it as a change of
 * posture, so that followers evaluate it again. Each replica knows the next lapse of every identity; the first one reports it.
 * differs: sessions end at that time, not at the next check of all sessions.
 */
export function startReportingLapses(
  changeLog: ChangeLog,
  engine: Pick<Engine, 'state' | 'onRow'>,
  { now, alarm }: LapseClock = { now: Date.now, alarm: openAlarm() },
): AsyncDisposable {
  const stop = new AbortController()
  const schedule = openLapseSchedule(engine.state)
  const listening = engine.onRow((kind, id) => {
    const before = schedule.nextMs
    if (kind === 'posture-data') schedule.put(id)
    else if (kind === 'posture-checks') schedule.checksChanged()
    if (schedule.isStale || schedule.nextMs !== before) alarm.ring()
  })

  async function run(): Promise<void> {
    const backoff = openBackoff(LAPSE_PAUSES)
    const { log } = changeLog
    using outage = openOutage((err) => log.warn({ err }, 'lapsed second factors not reported'), {
      lastsMs: 0,
    })
    while (!stop.signal.aborted) {
      await schedule.renew(stop.signal)
      const lapsed = schedule.takeUntil(now())
      try {
        await reportLapses(changeLog, lapsed)
        backoff.reset()
        outage.works()
      } catch (err) {
        outage.failed(err)
        for (const id of lapsed.keys()) schedule.put(id)
        await backoff.pause(stop.signal)
      }
      if (schedule.isStale) continue
      const ms = (schedule.nextMs ?? Infinity) - now()
      if (ms > 0) await alarm.sleep(stop.signal, Math.min(Math.max(ms, LAPSE_GATHER_MS), LONGEST_SLEEP_MS))
    }
  }
  const running = run()
  return {
    async [Symbol.asyncDispose]() {
      listening[Symbol.dispose]()
      stop.abort()
      await running
    },
  }
}

/** Reports lapses, each with its time, unless they are reported. In the order of identities, in which others lock them. */
export async function reportLapses(
  changeLog: ChangeLog,
  lapsedAtMs: ReadonlyMap<string, number>,
): Promise<void> {
  const lapsed = [...lapsedAtMs].sort(([a], [b]) => (a < b ? -1 : 1))
  for (let i = 0; i < lapsed.length; i += LAPSES_AT_ONCE) {
    const context = {
      ...ownContext(new AbortController().signal),
      deadline: new Date(Date.now() + LAPSE_WRITE_MS),
    }
    const page = new Map(lapsed.slice(i, i + LAPSES_AT_ONCE))
    await writeChanges(changeLog, context, (tx) => touchLapsed(tx, page))
  }
}

/** The next lapse of each identity, and until it is reported, the last one that has happened. */
export function openLapseSchedule(state: Pick<State, 'postureData' | 'checkContents' | 'lapsedAtMs'>) {
  const deadlines = openDeadlines()
  let timings: readonly MfaCheck[] | undefined
  let isStale = true

  function put(id: string): void {
    const posture = state.postureData.get(id)
    const next = posture && nextLapse(timings ?? [], posture, state.lapsedAtMs.get(id) ?? 0)
    if (next === undefined) deadlines.delete(id)
    else deadlines.set(id, next)
  }
  return {
    put,
    get nextMs() {
      return deadlines.nextMs
    },
    /** Checks have changed since the last `renew`. */
    get isStale() {
      return isStale
    },
    checksChanged(): void {
      isStale = true
    },
    /** Puts all identities again if the checks lapse at other times than before. */
    async renew(signal: AbortSignal): Promise<void> {
      if (!isStale) return
      isStale = false
      const next = mfaTimings(state)
      if (JSON.stringify(next) === JSON.stringify(timings)) return
      timings = next
      const yieldNow = yielder()
      for (const id of state.postureData.keys()) {
        if (signal.aborted) return
        put(id)
        await yieldNow()
      }
    },
    /** Removes the identities with lapses until then, and returns the last lapse of each. They are put again with their next row. */
    takeUntil(nowMs: number): ReadonlyMap<string, number> {
      return new Map(
        deadlines.takeUntil(nowMs).flatMap((id) => {
          const posture = state.postureData.get(id)
          const at = posture && lastLapse(timings ?? [], posture, nowMs)
          return at === undefined ? [] : [[id, at] as const]
        }),
      )
    },
  }
}
