import { disposeAll, runPeriodically } from '@overlay/process/async'
import type { ChangeLog, Consumer } from '@overlay/store/change-log'
import { startRemovingGuesses } from '@overlay/store/guesses'
import type { Lifetimes } from '../domain/lifetimes.js'
import { removeUnusedTokens } from '../store/access-tokens.js'
import { removeOldRefreshTokens } from '../store/oidc-grants.js'
import { removeOldLogins } from '../store/oidc-logins.js'
import { endLapsedNames } from './lapsed-names.js'
import { startSessionReaper } from './session-reaper.js'

const REMOVE_LOGINS_EVERY_MS = 10_000
const REMOVE_TOKENS_EVERY_MS = 60_000
const END_NAMES_EVERY_MS = 15_000

interface HousekeepingDeps {
  readonly changeLog: ChangeLog
  readonly lifetimes: Lifetimes
  readonly routers: Pick<Consumer, 'catchUp'>
}

/** Removes what has expired. */
export function startHousekeeping({ changeLog, lifetimes, routers }: HousekeepingDeps): AsyncDisposable {
  const { db, log } = changeLog
  const reaper = startSessionReaper(changeLog, lifetimes)
  const guesses = startRemovingGuesses(db, log)
  const logins = runPeriodically(REMOVE_LOGINS_EVERY_MS, () =>
    removeOldLogins(db).catch((err: unknown) => log.warn({ err }, 'unfinished OIDC logins not removed')),
  )
  const tokens = runPeriodically(REMOVE_TOKENS_EVERY_MS, () =>
    Promise.all([removeOldRefreshTokens(db), removeUnusedTokens(db)]).catch((err: unknown) =>
      log.warn({ err }, 'old tokens not removed'),
    ),
  )
  const names = runPeriodically(END_NAMES_EVERY_MS, (signal) =>
    endLapsedNames(db, routers, AbortSignal.any([signal, AbortSignal.timeout(END_NAMES_EVERY_MS)])).catch(
      (err: unknown) => signal.aborted || log.warn({ err }, 'lapsed names of routers not removed'),
    ),
  )
  return {
    [Symbol.asyncDispose]: () => disposeAll(names, guesses, tokens, logins, reaper),
  }
}
