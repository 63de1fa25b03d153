import type { ChangeServiceService, Context, Methods, Written } from '@overlay/rpc'
import { afterCommit, withDeadline } from './after-commit.js'
import type { ChangeLog } from './change-log.js'

/**
 * Returns a write when those who follow its schema have taken their steps, so that who made it sees all of it. It is
 * committed: who is away or late takes them afterwards, and nobody is told that it failed.
 */
export const waitForFollowers =
  (
    changeLog: Pick<ChangeLog, 'db' | 'log'>,
    followers: readonly Pick<Methods<ChangeServiceService>, 'reach'>[],
  ) =>
  async (written: Written, context: Context): Promise<Written> => {
    const { position } = written
    const { schema } = changeLog.db
    const inTime = withDeadline(context)
    const taken = followers.map((follower) => follower.reach({ schema, position }, inTime))
    await Promise.all(taken.map((step) => afterCommit(changeLog, step)))
    return written
  }

export type WaitForFollowers = ReturnType<typeof waitForFollowers>
