import { metrics } from '@overlay/process'
import { type Context, Fault, paused } from '@overlay/rpc'
import { type NoteRefusal, type PauseReports, pauseRows } from '@overlay/service'
import { type ChangeLog, writeChanges } from '@overlay/store/change-log'
import { countWrongGuess, type Guess, type GuessHistory, guessHistory, pauseOf } from '@overlay/store/guesses'
import { type Hashing, turnOf } from '../credentials/hashing.js'
import { replaceHash } from '../store/authenticators.js'
import { disableIdentity } from '../store/identity-state.js'
import { countFailure, type PasswordLookUp, recordSuccess } from '../store/password-attempts.js'
import type { Subject } from '../store/subjects.js'
import {
  about,
  identityIsEnabled,
  policyAllows,
  type Reason,
  refusalOf,
  type Step,
  subjectIsKnown,
} from './login.js'
import { guessOf, refuseLogin } from './refusals.js'

const nameAndPasswordArePresent: Step = ({ username, password }) => {
  if (username === '' || password === '')
    throw new Fault('COULD_NOT_VALIDATE', 'username and password are both required')
  return undefined
}

const passwordIsCorrect: Step = about((_subject, { passwordMatches = false }) =>
  passwordMatches ? undefined : 'wrong password',
)

/** The order of checks after the password is compared: time must not reveal which of them fails. */
const afterComparing: readonly Step[] = [
  subjectIsKnown,
  identityIsEnabled,
  policyAllows(({ isPasswordAllowed }) => isPasswordAllowed),
  passwordIsCorrect,
]

const passwordIsAccepted: Step = (login) =>
  tryPassword(login, {
    username: login.username,
    password: login.password,
    find: login.lookUpPassword,
    refuse(subject, passwordMatches) {
      login.subject = subject
      login.passwordMatches = passwordMatches
      return refusalOf(afterComparing, login)
    },
  })

/** The order of checks. */
export const passwordSteps: readonly Step[] = [nameAndPasswordArePresent, passwordIsAccepted]

interface Deps {
  readonly changeLog: ChangeLog
  readonly hashing: Hashing
  readonly context: Context
  readonly noteRefusal: NoteRefusal
  readonly noteLock: NoteRefusal
  readonly pauseReports: PauseReports
}

export interface PasswordAttempt {
  readonly username: string
  readonly password: string
  /** Reads the history of the guess, and unless that pauses it, the authenticator of the user name. */
  find(guess: Guess & { readonly account: string }): Promise<PasswordLookUp>
  /** Returns why the attempt is refused, if it is. */
  refuse(subject: Subject | undefined, isCorrect: boolean): Promise<Reason | undefined>
}

/**
 * Tries a password. Limits by name and network hold before the hash, and again if the hash had to wait. A failure is
 * counted before the next attempt may start. Every name and every refusal take the same statements and one hash, so that
 * their time does not reveal which names exist.
 */
export async function tryPassword(
  deps: Deps,
  { username, password, find, refuse }: PasswordAttempt,
): Promise<Reason | undefined> {
  const { changeLog, hashing, context } = deps
  const guess = { ...guessOf('password', context), account: username }
  const { history: before, subject } = await find(guess)
  refusePaused(deps, guess, before)
  const turn = { ...turnOf(context, username), isFamiliar: before.isFamiliar }
  return hashing.inTurn(turn, async ({ compare, strengthen }, hasWaited) => {
    const history = hasWaited ? await guessHistory(changeLog.db, guess) : before
    refusePaused(deps, guess, history)
    const stored = subject?.password ?? null
    const reason = await refuse(subject, await compare(stored, password))
    if (reason !== undefined) {
      await countRefusal(deps, guess, history, subject, reason)
      return reason
    }
    if (subject && (subject.hasFailed || history.isStale))
      await recordSuccess(changeLog.db, guess, subject.authenticatorId)
    const stronger = stored === null ? undefined : await strengthen(stored, password)
    if (subject && stored !== null && stronger)
      await replaceHash(changeLog.db, subject.authenticatorId, stored, stronger)
    return undefined
  })
}

/** Refuses an attempt while its name is paused, whether or not the name exists. */
function refusePaused({ context, noteRefusal }: Deps, guess: Guess, history: GuessHistory): void {
  const pause = pauseOf(guess.limits, history)
  if (!pause) return
  refuseLogin(noteRefusal, context, { method: 'password', reason: 'paused', username: guess.account })
  throw paused(pause.seconds)
}

/** differs: only failures count, for all replicas together. */
async function countRefusal(
  { changeLog, context, noteLock, pauseReports }: Deps,
  guess: Guess,
  history: GuessHistory,
  subject: Subject | undefined,
  reason: Reason,
): Promise<void> {
  const begun = await countWrongGuess(changeLog.db, guess, history)
  const account = { username: guess.account, ...idsOf(subject) }
  pauseReports.report(context, guess, begun, account)
  pauseReports.auditLater(context, pauseRows(guess, begun, account))

  const lockable = reason === 'wrong password' && subject && isLockable(subject) ? subject : undefined
  const failures = await countFailure(changeLog.db, lockable?.authenticatorId)
  if (!lockable || failures < lockable.maxAttempts) return
  await writeChanges(changeLog, context, (tx) =>
    disableIdentity(tx, lockable.identityId, lockable.lockoutMinutes),
  )
  metrics.identitiesLocked.inc()
  noteLock(context, { method: 'password', reason: 'maxAttempts', ...account })
}

const idsOf = (subject: Subject | undefined) =>
  subject && { identityId: subject.identityId, identityName: subject.identityName }

/** differs: the default admin is paused like any other identity, but no policy lets others lock it out. */
const isLockable = ({ maxAttempts, isDefaultAdmin }: Subject): boolean => maxAttempts > 0 && !isDefaultAdmin
