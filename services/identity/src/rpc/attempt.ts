import type { History } from '@overlay/platform'
import type { Context } from '@overlay/rpc'
import { countFailure, forgetFailures } from '../store/attempts.js'
import { lockOut } from '../store/shut.js'
import type { Subject } from '../store/subjects.js'

/**
 * Keeps what came of comparing a password, wherever one is asked for.
 * differs: only failures count, for all replicas together.
 */
export async function noteAttempt(
  history: History,
  context: Context,
  subject: Subject,
  isRight: boolean,
): Promise<void> {
  const { authenticatorId, maxAttempts, hasFailed } = subject
  if (isRight) {
    if (hasFailed) await forgetFailures(history.db, authenticatorId)
    return
  }
  const failures = await countFailure(history.db, authenticatorId)
  if (maxAttempts > 0 && failures >= maxAttempts) await lockOut(history, context, subject)
}
