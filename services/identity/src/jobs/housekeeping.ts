import { runPeriodically } from '@overlay/platform/async'
import type { ChangeLog } from '@overlay/platform/change-log'
import type { Lifetimes } from '../domain/lifetimes.js'
import { removeOldAttempts } from '../store/login-attempts.js'
import type { JobDeps } from './jobs.js'
import { startSessionReaper } from './session-reaper.js'
import { removeUnfinished } from './snapshot.js'

const REMOVE_ATTEMPTS_EVERY_MS = 5 * 60_000

/** Removes what has expired, or what a replica that died has left behind. */
export function startHousekeeping(
  changeLog: ChangeLog,
  lifetimes: Lifetimes,
  snapshots: JobDeps['snapshots'],
): AsyncDisposable {
  const { db, log } = changeLog
  removeUnfinished({ db, snapshots }).catch((err: unknown) =>
    log.warn({ err }, 'unfinished snapshots not removed'),
  )
  const reaper = startSessionReaper(changeLog, lifetimes)
  const attempts = runPeriodically(REMOVE_ATTEMPTS_EVERY_MS, () =>
    removeOldAttempts(db).catch((err: unknown) => log.warn({ err }, 'old login attempts not removed')),
  )
  return {
    async [Symbol.asyncDispose]() {
      await attempts[Symbol.asyncDispose]()
      await reaper[Symbol.asyncDispose]()
    },
  }
}
