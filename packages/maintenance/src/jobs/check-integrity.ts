import type { Context } from '@overlay/rpc'
import type { JobDeps } from './jobs.js'
import { addFindings, type Run, removeOtherFindings } from './stored-runs.js'

export const INTEGRITY_LIMIT_MS = 3_600_000
/** wire: no more are listed. */
export const MOST_FINDINGS = 1000

/** Runs the checks of all schemas, one after the other. */
export async function checkIntegrity(
  { db, maintenance, log }: Pick<JobDeps, 'db' | 'maintenance' | 'log'>,
  run: Run,
  fix: boolean,
  context: Context,
): Promise<void> {
  await removeOtherFindings(db, run)
  const sum = { found: 0, fixed: 0 }
  for (const [schema, service] of Object.entries(maintenance)) {
    for await (const { findings } of service.check({ fix }, context)) {
      // one more than are listed: the answer shows that there are more
      await addFindings(db, run, findings.slice(0, Math.max(0, MOST_FINDINGS + 1 - sum.found)))
      sum.found += findings.length
      sum.fixed += findings.filter(({ fixed }) => fixed).length
      for (const { description, fixed } of findings) log.warn({ schema, description, fixed }, 'does not fit')
    }
    context.signal.throwIfAborted() // an aborted stream ends like a complete one
  }
  log.info({ ...sum, fix }, 'looked for what does not fit')
}
