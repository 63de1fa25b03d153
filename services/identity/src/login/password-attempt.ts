import { type ChangeLog, writeChanges } from '@overlay/platform/change-log'
import type { NoteRefusal } from '@overlay/platform/service'
import { type Context, Fault, sourceOf } from '@overlay/rpc'
import { type Hashing, turnOf } from '../credentials/hashing.js'
import { type AttemptHistory, isPaused } from '../domain/login-pause.js'
import { replaceHash } from '../store/authenticators.js'
import { disableIdentity } from '../store/disabled-identities.js'
import { type Attempt, attemptsOf, countFailure, recordSuccess } from '../store/login-attempts.js'
import type { Subject } from '../store/subjects.js'
import type { Reason } from './login.js'
import { refuseLogin } from './refuse-login.js'

interface Deps {
  readonly changeLog: ChangeLog
  readonly hashing: Hashing
  readonly context: Context
  readonly noteRefusal: NoteRefusal
}

export interface PasswordAttempt {
  readonly username: string
  readonly password: string
  /** Reads the authenticator of the user name. */
  find(): Promise<Subject | undefined>
  /** Returns why the attempt is refused, if it is. */
  judge(subject: Subject | undefined, isCorrect: boolean): Promise<Reason | undefined>
}

/**
 * Tries a password. Limits by name and network hold before the hash, and again if the hash had to wait; a failure is
 * counted before the next attempt may start. Every name and every refusal take the same statements and one hash, so that
 * their time does not reveal which names exist.
 */
export async function tryPassword(
  deps: Deps,
  { username, password, find, judge }: PasswordAttempt,
): Promise<Reason | undefined> {
  const { changeLog, hashing, context } = deps
  const attempt = { username, source: sourceOf(context.sourceAddress) }
  const before = await admit(deps, attempt)
  const subject = await find()
  const turn = turnOf(context, username)
  // names that have logged in from an address share one turn, all other attempts from it share another
  const source = before.isFamiliar ? `${turn.source} familiar` : turn.source
  return hashing.inTurn({ ...turn, source }, async ({ compare, strengthen }, hasWaited) => {
    const history = hasWaited ? await admit(deps, attempt) : before
    const stored = subject?.password ?? null
    const reason = await judge(subject, await compare(stored, password))
    if (reason !== undefined) {
      await countRefusal(changeLog, context, attempt, subject, reason)
      return reason
    }
    if (subject && (subject.hasFailed || history.isStale))
      await recordSuccess(changeLog.db, attempt, subject.authenticatorId)
    const stronger = stored === null ? undefined : await strengthen(stored, password)
    if (subject && stored !== null && stronger)
      await replaceHash(changeLog.db, subject.authenticatorId, stored, stronger)
    return undefined
  })
}

/** Refuses an attempt while its name is paused, whether or not the name exists. */
async function admit({ changeLog, context, noteRefusal }: Deps, attempt: Attempt): Promise<AttemptHistory> {
  const history = await attemptsOf(changeLog.db, attempt)
  if (!isPaused(history)) return history
  const { username } = attempt
  refuseLogin(noteRefusal, context, { method: 'password', reason: 'paused', username })
  throw new Fault('SERVER_TOO_MANY_REQUESTS')
}

/** differs: only failures count, for all replicas together. */
async function countRefusal(
  changeLog: ChangeLog,
  context: Context,
  attempt: Attempt,
  subject: Subject | undefined,
  reason: Reason,
): Promise<void> {
  const lockable = reason === 'wrong password' && subject && isLockable(subject) ? subject : undefined
  const failures = await countFailure(changeLog.db, attempt, lockable?.authenticatorId)
  if (!lockable || failures < lockable.maxAttempts) return
  await writeChanges(changeLog, context, (tx) =>
    disableIdentity(tx, lockable.identityId, lockable.lockoutMinutes),
  )
}

/** differs: the default admin is paused like any other identity, but no policy lets others lock it out. */
const isLockable = ({ maxAttempts, isDefaultAdmin }: Subject): boolean => maxAttempts > 0 && !isDefaultAdmin
