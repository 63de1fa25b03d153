import { metrics } from '@overlay/process'
import type { Context } from '@overlay/rpc'
import { AFTER_COMMIT_MS } from '../limits.js'
import { isAway } from '../postgres/database-failure.js'
import type { ChangeLog } from './change-log.js'

/** The request's context, for a step after its commit. */
export function withDeadline(
  context: Context,
  ms: number = AFTER_COMMIT_MS,
): Context & { readonly deadline: Date } {
  const latest = Date.now() + ms
  return { ...context, deadline: new Date(Math.min(latest, context.deadline?.getTime() ?? latest)) }
}

/**
 * Waits for a step that follows from a commit. A failure is not a failure of the write: a follower takes the step later
 * in any case. Counts steps that time out or whose service is unavailable, logs other failures.
 */
export async function afterCommit(
  { db, log }: Pick<ChangeLog, 'log'> & { readonly db: Pick<ChangeLog['db'], 'schema'> },
  step: Promise<unknown>,
): Promise<void> {
  try {
    await step
  } catch (err) {
    metrics.waitExpired.inc({ schema: db.schema })
    if (!isAway(err))
      log.warn({ err, schema: db.schema }, 'step after a commit failed; its follower takes it')
  }
}
