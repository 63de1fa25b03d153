import { setTimeout as delay } from 'node:timers/promises'
import type { ChangeLog } from '@overlay/platform/change-log'
import { ownContext } from '@overlay/rpc'
import type { Logger } from 'pino'
import type { Lifetimes } from '../domain/lifetimes.js'
import { reapSessions, type SessionLimits } from '../store/api-sessions.js'

const everyMs = 5000
const atOnce = 500
/** Gateways report use in batches, so that idle sessions get a little longer than promised. */
const graceMs = 60_000

/** Ends sessions that are idle, have reached their lifetime, or whose method the auth policy no longer allows. */
export function startReapingSessions(
  changeLog: ChangeLog,
  { timeoutSeconds, lifetimeSeconds }: Lifetimes,
  log: Logger,
): AsyncDisposable {
  const limits = { idleMs: timeoutSeconds * 1000 + graceMs, lifetimeMs: lifetimeSeconds * 1000 }
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
        const ended = await endSome(changeLog, limits)
        if (ended > 0) log.info({ count: ended }, 'sessions ended')
        if (ended === atOnce) continue
      } catch (err) {
        log.warn({ err }, 'sessions not ended')
      }
      await delay(everyMs, undefined, { signal }).catch(() => undefined) // aborted: the loop ends
    }
  }
}

async function endSome(changeLog: ChangeLog, limits: SessionLimits): Promise<number> {
  const context = { ...ownContext(new AbortController().signal), deadline: new Date(Date.now() + 30_000) }
  const { result } = await changeLog.write(context, async (tx) => {
    const changes = await reapSessions(tx, limits, atOnce)
    return { result: changes.length, changes }
  })
  return result
}
