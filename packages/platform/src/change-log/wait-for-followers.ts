import type { ChangeServiceService, Context, Methods, Written } from '@overlay/rpc'
import { afterCommit, withDeadline } from './after-commit.js'
import type { ChangeLog } from './change-log.js'

/** A service that may follow this one. */
export interface RemoteFollower {
  readonly source: { readonly schema: string }
  readonly changes: Pick<Methods<ChangeServiceService>, 'reach' | 'head'>
}

/**
 * Returns a write when its followers have applied it, so that the caller sees their effects. It is committed: a follower
 * that is unavailable or late applies it afterwards, and the write does not fail. `schemas`: of these followers only;
 * absent: of all. In a list within the list, each follower applies what the one before it has written.
 */
export type WaitForFollowers = (
  written: Written,
  context: Context,
  schemas?: readonly (string | readonly string[])[],
) => Promise<Written>

export const waitForFollowers =
  (changeLog: Pick<ChangeLog, 'db' | 'log'>, followers: readonly RemoteFollower[]): WaitForFollowers =>
  async (written, context, schemas) => {
    const limited = withDeadline(context)
    const reach = async (chain: string | readonly string[]): Promise<void> => {
      let [schema, position] = [changeLog.db.schema, written.position]
      for (const next of [chain].flat()) {
        const changes = followers.find(({ source }) => source.schema === next)?.changes
        if (position) await changes?.reach({ schema, position }, limited)
        ;[schema, position] = [next, await changes?.head({}, limited)]
      }
    }
    const chains = schemas ?? followers.map(({ source }) => source.schema)
    await Promise.all(chains.map((chain) => afterCommit(changeLog, reach(chain))))
    return written
  }
