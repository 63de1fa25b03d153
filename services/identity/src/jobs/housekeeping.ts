import { setTimeout as delay } from 'node:timers/promises'
import { runPeriodically } from '@overlay/process/async'
import { ownContext } from '@overlay/rpc'
import type { ChangeLog, Consumer } from '@overlay/store/change-log'
import { startRemovingGuesses } from '@overlay/store/guesses'
import type { Db } from '@overlay/store/postgres'
import type { Lifetimes } from '../domain/lifetimes.js'
import {
  END_NAMES_EVERY_MS,
  IDLE_EXTRA_MS,
  REAP_EVERY_MS,
  REAP_MS,
  REAPED_SESSIONS,
  REMOVE_LOGINS_EVERY_MS,
  REMOVE_TOKENS_EVERY_MS,
} from '../limits.js'
import { removeOldRefreshTokens } from '../store/oidc-grants.js'
import { removeOldLogins } from '../store/oidc-logins.js'
import { lapsedNames, removeLapsedNames } from '../store/router-identities.js'
import { removeOldRevocations, removeUnusedTokens } from '../store/session-credentials.js'
import { areSessionsDue, endDueSessions, type SessionLimits } from '../store/session-ends.js'

interface HousekeepingDeps {
  readonly changeLog: ChangeLog
  readonly lifetimes: Lifetimes
  readonly routers: Pick<Consumer, 'catchUp'>
}

/** Removes what has expired. */
export function startHousekeeping({ changeLog, lifetimes, routers }: HousekeepingDeps): AsyncDisposable {
  const { db, log } = changeLog
  const jobs = new AsyncDisposableStack()
  jobs.use(startSessionReaper(changeLog, lifetimes))
  jobs.use(startRemovingGuesses(db, log))
  const removeLogins = () =>
    removeOldLogins(db).catch((err: unknown) => log.warn({ err }, 'unfinished OIDC logins not removed'))
  jobs.use(runPeriodically(REMOVE_LOGINS_EVERY_MS, removeLogins))
  const removeTokens = () =>
    Promise.all([removeOldRefreshTokens(db), removeUnusedTokens(db), removeOldRevocations(db)]).catch(
      (err: unknown) => log.warn({ err }, 'old tokens not removed'),
    )
  jobs.use(runPeriodically(REMOVE_TOKENS_EVERY_MS, removeTokens))
  const removeNames = (signal: AbortSignal) =>
    endLapsedNames(db, routers, AbortSignal.any([signal, AbortSignal.timeout(END_NAMES_EVERY_MS)])).catch(
      (err: unknown) => signal.aborted || log.warn({ err }, 'lapsed names of routers not removed'),
    )
  jobs.use(runPeriodically(END_NAMES_EVERY_MS, removeNames))
  return jobs
}

/** Ends sessions that are idle, have reached their lifetime, or whose method the auth policy no longer allows. */
export function startSessionReaper(
  changeLog: ChangeLog,
  { timeoutSeconds, lifetimeSeconds }: Lifetimes,
): AsyncDisposable {
  const { log } = changeLog
  const limits = { idleMs: timeoutSeconds * 1000 + IDLE_EXTRA_MS, lifetimeMs: lifetimeSeconds * 1000 }
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
        const count = (await reapSessions(changeLog, limits, REAPED_SESSIONS)).length
        if (count > 0) log.info({ count }, 'sessions ended')
        if (count === REAPED_SESSIONS) continue
      } catch (err) {
        log.warn({ err }, 'sessions not ended')
      }
      await delay(REAP_EVERY_MS, undefined, { signal }).catch(() => undefined) // aborted: the loop ends
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
  const context = { ...ownContext(new AbortController().signal), deadline: new Date(Date.now() + REAP_MS) }
  const { result } = await changeLog.write(context, async (tx) => {
    const changes = await endDueSessions(tx, limits, count)
    return { result: changes.map(({ id }) => id), changes }
  })
  return result
}

/**
 * Removes reservations that have lapsed, when the consumer has applied all routers that got their names in time: their
 * identities have the names then.
 */
export async function endLapsedNames(
  db: Db,
  routers: Pick<Consumer, 'catchUp'>,
  signal: AbortSignal,
): Promise<void> {
  const lapsed = await lapsedNames(db)
  if (lapsed.length === 0) return
  await routers.catchUp(signal)
  await removeLapsedNames(db, lapsed)
}
