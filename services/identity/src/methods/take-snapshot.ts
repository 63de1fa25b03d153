import { noSnapshots } from '@overlay/maintenance'
import { untilAborted } from '@overlay/process/async'
import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { saveSnapshot } from '../jobs/snapshot.js'
import type { Deps } from './deps.js'

/** Saves all schemas. The snapshot continues when the caller does not wait for its end. */
export const takeSnapshot =
  ({ jobs, jobDeps }: Pick<Deps, 'jobs' | 'jobDeps'>): Methods<IdentityServiceService>['takeSnapshot'] =>
  async (_request, context) => {
    const { snapshots } = jobDeps
    if (snapshots === undefined) throw noSnapshots('identity')
    const { ended } = await jobs.start('snapshot', false, jobDeps.snapshotLimitMs, context, (run, own) =>
      saveSnapshot({ ...jobDeps, snapshots }, run, own),
    )
    return { name: await Promise.race([ended, untilAborted(context.signal, 'the snapshot goes on')]) }
  }
