import type { Context } from '@overlay/rpc'
import { isAway } from '../postgres/database-failure.js'
import { metrics } from '../process/metrics.js'
import type { ChangeLog } from './change-log.js'

/** A request may take 10 s: enough of them must be left for its answer. */
export const AFTER_COMMIT_MS = 5000

/** The same request, for a step after its commit. */
export function withDeadline(context: Context): Context & { readonly deadline: Date } {
  const latest = Date.now() + AFTER_COMMIT_MS
  return { ...context, deadline: new Date(Math.min(latest, context.deadline?.getTime() ?? latest)) }
}

/**
 * Waits for a step that follows from what is committed, and that somebody takes later in any case: that it failed now
 * must not tell the client that its write did. Who is away or late is counted, all else is logged.
 */
export async function afterCommit(
  { db, log }: Pick<ChangeLog, 'db' | 'log'>,
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
