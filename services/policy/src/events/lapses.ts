import type { History } from '@overlay/platform'
import { ownContext } from '@overlay/rpc'
import type { Logger } from 'pino'
import { lapsedBetween } from '../domain/posture/lapses.js'
import type { State } from '../domain/state.js'
import { tellLapsed } from '../store/posture-data.js'

const TICK_MS = 5000

/**
 * Codes of second factors end by time, and so may sessions: followers hear of it as if the endpoint had said something.
 * All replicas look, the first one tells.
 */
export function startTellingLapses(history: History, state: State, log: Logger): AsyncDisposable {
  let lookedAt = 0 // what lapsed while nobody looked is told now, unless it was told
  let running: Promise<void> | undefined
  let failing = false

  const look = async (): Promise<void> => {
    try {
      const now = Date.now()
      await tellBetween(history, state, lookedAt, now)
      lookedAt = now
      failing = false
    } catch (err) {
      if (!failing) log.warn({ err }, 'lapsed second factors not told')
      failing = true
    }
  }
  const ticking = setInterval(() => {
    running ??= look().finally(() => {
      running = undefined
    })
  }, TICK_MS)
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(ticking)
      await running
    },
  }
}

export async function tellBetween(history: History, state: State, from: number, to: number): Promise<void> {
  const lapsed = lapsedBetween(state, from, to)
  if (lapsed.size === 0) return
  await history.write(ownContext(AbortSignal.timeout(TICK_MS)), async (tx) => ({
    result: undefined,
    changes: await tellLapsed(tx, lapsed),
  }))
}
