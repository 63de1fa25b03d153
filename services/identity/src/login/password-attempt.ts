import type { ChangeLog } from '@overlay/platform/change-log'
import { metrics } from '@overlay/platform/process'
import { type Context, Fault, sourceOf } from '@overlay/rpc'
import type { Hashing, Turn } from '../credentials/hashing.js'
import { isPaused, type Tries } from '../domain/login-pause.js'
import { type Attempt, countFailure, noteSuccess, triesOf } from '../store/login-attempts.js'
import { lockOut } from '../store/shut.js'
import type { Subject } from '../store/subjects.js'
import type { Reason } from './login.js'

interface Parts {
  readonly changeLog: ChangeLog
  readonly hashing: Hashing
  readonly context: Context
}

/** How hashes for this request queue. */
export const turnOf = ({ caller, sourceAddress, signal }: Context, name = caller.identityId): Turn => ({
  source: sourceOf(sourceAddress),
  name,
  signal,
})

/**
 * Tries a password, wherever one is asked for. `find` reads whose it may be, `judge` says why it is refused. Limits by
 * name and network hold before the hash, and again if the hash had to wait; the failure is counted before the next
 * attempt may start. Every name and every refusal take the same statements and one hash: time does not tell names.
 */
export async function tryPassword(
  { changeLog, hashing, context }: Parts,
  username: string,
  password: string,
  find: () => Promise<Subject | undefined>,
  judge: (subject: Subject | undefined, isRight: boolean) => Promise<Reason | undefined>,
): Promise<Reason | undefined> {
  const attempt = { username, source: sourceOf(context.sourceAddress) }
  const atFirst = await admit(changeLog, attempt)
  const subject = await find()
  const turn = turnOf(context, username)
  // users of an address take turns with everything else that comes from it
  const source = atFirst.isFamiliar ? `${turn.source} familiar` : turn.source
  return hashing.inTurn({ ...turn, source }, async (compare, hasWaited) => {
    const tries = hasWaited ? await admit(changeLog, attempt) : atFirst
    const reason = await judge(subject, await compare(subject?.password ?? null, password))
    if (reason !== undefined) await countRefusal(changeLog, context, attempt, subject, reason)
    else if (subject && (subject.hasFailed || tries.isStale))
      await noteSuccess(changeLog.db, attempt, subject.authenticatorId)
    return reason
  })
}

/** Refuses an attempt while its name is paused, whether or not the name exists. */
async function admit({ db }: ChangeLog, attempt: Attempt): Promise<Tries> {
  const tries = await triesOf(db, attempt)
  if (!isPaused(tries)) return tries
  metrics.loginRefused.inc({ method: 'password', reason: 'paused' })
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
  const counted = reason === 'wrong password' && subject && isLockable(subject) ? subject : undefined
  const failures = await countFailure(changeLog.db, attempt, counted?.authenticatorId)
  if (counted && failures >= counted.maxAttempts) await lockOut(changeLog, context, counted)
}

/** differs: the default admin is paused like everybody, but no policy lets others lock it out. */
const isLockable = ({ maxAttempts, isDefaultAdmin }: Subject): boolean => maxAttempts > 0 && !isDefaultAdmin
