import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { MOST_FINDINGS } from '../jobs/integrity.js'
import { findingsOf, lastRun } from '../store/job-runs.js'
import type { Deps } from './deps.js'

/** The last integrity run, also while it is running. */
export const getIntegrityRun =
  ({ jobDeps: { db } }: Pick<Deps, 'jobDeps'>): Methods<IdentityServiceService>['getIntegrityRun'] =>
  async () => {
    const run = await lastRun(db, 'integrity')
    const findings = run ? await findingsOf(db, run.id) : []
    return {
      inProgress: run !== undefined && run.endedAt === null,
      fixing: run?.isFixing ?? false,
      tooMany: findings.length > MOST_FINDINGS,
      startedAtMs: run?.startedAt.getTime() ?? 0,
      endedAtMs: run?.endedAt?.getTime() ?? 0,
      error: run?.error ?? '',
      findings: findings.slice(0, MOST_FINDINGS),
    }
  }
