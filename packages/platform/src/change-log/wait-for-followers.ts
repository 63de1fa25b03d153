import type { ChangeServiceService, Context, Methods, Written } from '@overlay/rpc'
import { afterCommit, withDeadline } from './after-commit.js'
import type { ChangeLog } from './change-log.js'

/**
 * Returns a write when its followers have applied it, so that the caller sees all of its effects. It is committed: a
 * follower that is unavailable or late applies it afterwards, and the write does not fail.
 */
export const waitForFollowers =
  (
    changeLog: Pick<ChangeLog, 'db' | 'log'>,
    followers: readonly Pick<Methods<ChangeServiceService>, 'reach'>[],
  ) =>
  async (written: Written, context: Context): Promise<Written> => {
    const { position } = written
    const { schema } = changeLog.db
    const limited = withDeadline(context)
    const steps = followers.map((follower) => follower.reach({ schema, position }, limited))
    await Promise.all(steps.map((step) => afterCommit(changeLog, step)))
    return written
  }

export type WaitForFollowers = ReturnType<typeof waitForFollowers>
