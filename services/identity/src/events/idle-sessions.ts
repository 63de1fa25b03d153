import { setTimeout as delay } from 'node:timers/promises'
import type { History } from '@overlay/platform'
import { ownContext } from '@overlay/rpc'
import type { Logger } from 'pino'
import { endIdleSessions } from '../store/api-sessions.js'

const everyMs = 5000
const atOnce = 500

/** Ends sessions that nobody uses any more. Marks of use arrive late, so they get a little longer than promised. */
export function startEndingIdleSessions(
  history: History,
  timeoutMs: number,
  log: Logger,
  graceMs = 60_000,
): AsyncDisposable {
  const stop = new AbortController()
  const { signal } = stop
  const running = run()
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      try {
        const ended = await endSome(history, timeoutMs + graceMs)
        if (ended > 0) log.info({ count: ended }, 'idle sessions ended')
        if (ended === atOnce) continue
      } catch (err) {
        log.warn({ err }, 'idle sessions not ended')
      }
      await delay(everyMs, undefined, { signal }).catch(() => undefined) // aborted: the loop ends
    }
  }
}

async function endSome(history: History, idleMs: number): Promise<number> {
  const context = { ...ownContext(new AbortController().signal), deadline: new Date(Date.now() + 30_000) }
  const { result } = await history.write(context, async (tx) => {
    const changes = await endIdleSessions(tx, idleMs, atOnce)
    return { result: changes.length, changes }
  })
  return result
}
