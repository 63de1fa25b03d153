import type { Context, IdentityServiceService, Methods } from '@overlay/rpc'
import { addFindings, findingsOf, forgetFindings, lastRun, type Run } from '../store/job-runs.js'
import type { JobGrounds, Jobs } from './jobs.js'

type Integrity = Pick<Methods<IdentityServiceService>, 'startIntegrityRun' | 'getIntegrityRun'>

const LIMIT_MS = 3_600_000
/** wire: no more are listed. */
const MOST_LISTED = 1000

/** Looks for what does not fit together in all schemas, one after the other. */
export function integrity({ db, owners, log }: JobGrounds, jobs: Jobs): Integrity {
  async function look(run: Run, fix: boolean, context: Context): Promise<void> {
    await forgetFindings(db, run)
    let found = 0
    let fixed = 0
    for (const [schema, owner] of Object.entries(owners)) {
      for await (const { findings } of owner.check({ fix }, context)) {
        // one more than is listed says that there are more
        await addFindings(db, run, findings.slice(0, Math.max(0, MOST_LISTED + 1 - found)))
        found += findings.length
        fixed += findings.filter((finding) => finding.fixed).length
        for (const { description, fixed } of findings)
          log.warn({ schema, description, fixed }, 'does not fit')
      }
      context.signal.throwIfAborted() // a stream that was given up ends like one that is at its end
    }
    log.info({ found, fixed, fix }, 'looked for what does not fit')
  }

  return {
    async startIntegrityRun({ fix }, context) {
      await jobs.start('integrity', fix, LIMIT_MS, context, (run, own) => look(run, fix, own))
      return {}
    },

    async getIntegrityRun() {
      const run = await lastRun(db, 'integrity')
      const findings = run ? await findingsOf(db, run.id) : []
      return {
        inProgress: run !== undefined && run.endedAt === null,
        fixing: run?.isFixing ?? false,
        tooMany: findings.length > MOST_LISTED,
        startedAtMs: run?.startedAt.getTime() ?? 0,
        endedAtMs: run?.endedAt?.getTime() ?? 0,
        error: run?.error ?? '',
        findings: findings.slice(0, MOST_LISTED),
      }
    },
  }
}
