import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { checkIntegrity, INTEGRITY_LIMIT_MS } from '../jobs/integrity.js'
import type { Deps } from './deps.js'

/** Starts to check what holds between schemas, and returns. */
export const startIntegrityRun =
  ({ jobs, jobDeps }: Pick<Deps, 'jobs' | 'jobDeps'>): Methods<IdentityServiceService>['startIntegrityRun'] =>
  async ({ fix }, context) => {
    await jobs.start('integrity', fix, INTEGRITY_LIMIT_MS, context, (run, own) =>
      checkIntegrity(jobDeps, run, fix, own),
    )
    return {}
  }
