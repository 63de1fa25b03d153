import { metrics } from '@overlay/process'
import { openAlarm, openBackoff, openOutage, runPeriodically } from '@overlay/process/async'
import { Fault, type Position } from '@overlay/rpc'
import type { Consumer } from '@overlay/store/change-log'
import type { Logger } from 'pino'
import {
  PAGES_AT_ONCE,
  PRUNE_REVOCATIONS_MS,
  REVOCATIONS_KEPT_MS,
  SWEEP_PAUSES,
  SWEEP_REST_MS,
  SWEEP_TICK_MS,
} from '../limits.js'
import { isPending, oldestPendingAge, pruneRevocations } from '../store/revocation.js'
import { type StepDeps, sweepStep } from './sweep-step.js'

export interface SweeperDeps extends StepDeps {
  readonly log: Logger
}

/** Checks the live sessions of recorded revocations and ends those that lost their access. */
export interface Sweeper extends AsyncDisposable {
  /** Starts a sweep at once. To be called after the commit that recorded revocations. */
  wake(): void
  /** Resolves when the sessions of these revocations are checked, as in `isPending`. TIMEOUT when aborted. */
  waitFor(schema: string, upto: Position | undefined, signal: AbortSignal): Promise<void>
}

/** Every replica sweeps what its consumers record, and what another replica has left behind. */
export function startSweeper({ log, ...deps }: SweeperDeps): Sweeper {
  const { db } = deps.changeLog
  const stop = new AbortController()
  const stepped = openAlarm()
  let running: Promise<void> | undefined
  let isDue = false
  let lookAt = 0 // not before
  let prunedAt = performance.now()

  async function run(): Promise<void> {
    const backoff = openBackoff(SWEEP_PAUSES)
    using outage = openOutage((err) => log.warn({ err }, 'sessions of revocations not checked'), {
      lastsMs: 0,
    })
    while (isDue && !stop.signal.aborted) {
      isDue = false
      try {
        while (!stop.signal.aborted && (await sweepStep(deps, PAGES_AT_ONCE))) stepped.ring()
        backoff.reset()
        outage.works()
      } catch (err) {
        outage.failed(err)
        isDue = true
        await backoff.pause(stop.signal)
      }
      stepped.ring()
    }
  }
  function wake(): void {
    isDue = true
    lookAt = 0
    running ??= run().finally(() => {
      running = undefined
      if (isDue && !stop.signal.aborted) wake()
    })
  }

  const ticking = runPeriodically(SWEEP_TICK_MS, async () => {
    const now = performance.now()
    if (now < lookAt) return
    lookAt = now + SWEEP_REST_MS // unless it is woken meanwhile
    try {
      const age = await oldestPendingAge(db)
      metrics.revocationPending.set(age ?? 0)
      if (age !== undefined) wake()
      if (now - prunedAt < PRUNE_REVOCATIONS_MS) return
      prunedAt = now
      await pruneRevocations(db, REVOCATIONS_KEPT_MS)
    } catch (err) {
      lookAt = 0
      log.debug({ err }, 'revocations not read')
    }
  })

  return {
    wake,
    async waitFor(schema, upto, signal) {
      while (await isPending(db, schema, upto)) {
        if (signal.aborted) throw new Fault('TIMEOUT', undefined, signal.reason)
        const step = stepped.sleep(signal)
        wake()
        await step
      }
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await ticking[Symbol.asyncDispose]()
      await running
    },
  }
}

/** A consumer whose changes have taken effect when the sessions that they concern are checked. */
export const withSweep = (
  schema: string,
  consumer: Consumer,
  sweeper: Pick<Sweeper, 'waitFor'>,
): Pick<Consumer, 'waitFor' | 'catchUp'> => ({
  async waitFor(position, signal) {
    await consumer.waitFor(position, signal)
    await sweeper.waitFor(schema, position, signal)
  },
  async catchUp(signal) {
    await consumer.catchUp(signal)
    await sweeper.waitFor(schema, undefined, signal)
  },
})
