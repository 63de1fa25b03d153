import type { ChangeServiceService, Context, Methods, Written } from '@overlay/rpc'
import { afterCommit, withDeadline } from './after-commit.js'
import type { ChangeLog } from './change-log.js'

/** A service that may follow this one. */
export interface RemoteFollower {
  readonly source: { readonly schema: string }
  readonly changes: Pick<Methods<ChangeServiceService>, 'reach'>
}

/**
 * Returns a write when its followers have applied it, so that the caller sees their effects. It is committed: a follower
 * that is unavailable or late applies it afterwards, and the write does not fail. `schemas`: of these followers only;
 * absent: of all.
 */
export type WaitForFollowers = (
  written: Written,
  context: Context,
  schemas?: readonly string[],
) => Promise<Written>

export const waitForFollowers =
  (changeLog: Pick<ChangeLog, 'db' | 'log'>, followers: readonly RemoteFollower[]): WaitForFollowers =>
  async (written, context, schemas) => {
    const { position } = written
    const { schema } = changeLog.db
    const limited = withDeadline(context)
    const steps = followers
      .filter(({ source }) => schemas?.includes(source.schema) ?? true)
      .map(({ changes }) => changes.reach({ schema, position }, limited))
    await Promise.all(steps.map((step) => afterCommit(changeLog, step)))
    return written
  }
