import { setTimeout as delay } from 'node:timers/promises'
import { ownContext } from '@overlay/rpc'
import type { ChangeLog } from '@overlay/store/change-log'
import type { Lifetimes } from '../domain/lifetimes.js'
import { areSessionsDue, endDueSessions, type SessionLimits } from '../store/session-ends.js'

const EVERY_MS = 5000
const PAGE_SIZE = 500
const WRITE_MS = 30_000
/** Gateways report use in batches, so idle sessions last a little longer than configured. */
const GRACE_MS = 60_000

/** Ends sessions that are idle, have reached their lifetime, or whose method the auth policy no longer allows. */
export function startSessionReaper(
  changeLog: ChangeLog,
  { timeoutSeconds, lifetimeSeconds }: Lifetimes,
): AsyncDisposable {
  const { log } = changeLog
  const limits = { idleMs: timeoutSeconds * 1000 + GRACE_MS, lifetimeMs: lifetimeSeconds * 1000 }
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
        const count = (await reapSessions(changeLog, limits, PAGE_SIZE)).length
        if (count > 0) log.info({ count }, 'sessions ended')
        if (count === PAGE_SIZE) continue
      } catch (err) {
        log.warn({ err }, 'sessions not ended')
      }
      await delay(EVERY_MS, undefined, { signal }).catch(() => undefined) // aborted: the loop ends
    }
  }
}

/** Ends up to `count` sessions that must end, and returns their ids. */
export async function reapSessions(
  changeLog: Pick<ChangeLog, 'db' | 'write'>,
  limits: SessionLimits,
  count: number,
): Promise<readonly string[]> {
  if (!(await areSessionsDue(changeLog.db, limits))) return []
  const context = { ...ownContext(new AbortController().signal), deadline: new Date(Date.now() + WRITE_MS) }
  const { result } = await changeLog.write(context, async (tx) => {
    const changes = await endDueSessions(tx, limits, count)
    return { result: changes.map(({ id }) => id), changes }
  })
  return result
}
