import { untilAborted } from '@overlay/process/async'
import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { noSnapshots } from '../maintenance-service.js'
import { checkIntegrity, INTEGRITY_LIMIT_MS, MOST_FINDINGS } from './check-integrity.js'
import { type JobDeps, openJobs } from './jobs.js'
import { removeUnfinished, saveSnapshot } from './save-snapshot.js'
import { findingsOf, lastRun } from './stored-runs.js'

type JobMethods = Pick<
  Methods<IdentityServiceService>,
  'startIntegrityRun' | 'getIntegrityRun' | 'takeSnapshot'
>

/** The jobs that concern all schemas, as methods of the service in whose schema their runs are stored. */
export function openJobMethods(deps: JobDeps): { readonly methods: JobMethods } & AsyncDisposable {
  const { db, snapshots, log } = deps
  if (snapshots !== undefined)
    removeUnfinished({ db, snapshots }).catch((err: unknown) =>
      log.warn({ err }, 'unfinished snapshots not removed'),
    )
  const jobs = openJobs(deps)
  const methods: JobMethods = {
    /** Starts to check what holds between schemas, and returns. */
    async startIntegrityRun({ fix }, context) {
      await jobs.start('integrity', fix, INTEGRITY_LIMIT_MS, context, (run, own) =>
        checkIntegrity(deps, run, fix, own),
      )
      return {}
    },

    /** The last integrity run, also while it is running. */
    async getIntegrityRun() {
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
    },

    /** Saves all schemas. The snapshot continues when the caller does not wait for its end. */
    async takeSnapshot(_request, context) {
      if (snapshots === undefined) throw noSnapshots('identity')
      const { ended } = await jobs.start('snapshot', false, deps.snapshotLimitMs, context, (run, own) =>
        saveSnapshot({ ...deps, snapshots }, run, own),
      )
      return { name: await Promise.race([ended, untilAborted(context.signal, 'the snapshot continues')]) }
    },
  }
  return { methods, [Symbol.asyncDispose]: () => jobs[Symbol.asyncDispose]() }
}
