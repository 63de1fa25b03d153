import type { ChangeServiceService, Context, Methods, Position, Positions, Written } from '@overlay/rpc'
import { AFTER_COMMIT_MS, LAGGING_MS, LAGGING_WAIT_MS } from '../limits.js'
import { isAway } from '../postgres/database-failure.js'
import { afterCommit, withDeadline } from './after-commit.js'
import type { ChangeLog } from './change-log.js'
import { headsReader } from './heads.js'

/** A service that may follow this one. */
export interface RemoteFollower {
  readonly source: { readonly schema: string }
  readonly changes: Pick<Methods<ChangeServiceService>, 'reach'>
}

/**
 * Returns a write when its followers have applied it, so that the caller sees their effects. It is committed: a follower
 * that is unavailable or lags applies it afterwards, and the write does not fail. `schemas`: of these followers only;
 * absent: of all. In a list within the list, each follower applies what the one before it has written. The result has
 * positions of the followers in `effects`, which contain what they have written because of it, if they were in time.
 */
export type WaitForFollowers = (
  written: Written,
  context: Context,
  schemas?: readonly (string | readonly string[])[],
  options?: { readonly effects: readonly string[] },
) => Promise<Written & { readonly effects?: Positions }>

export const waitForFollowers = (
  changeLog: Pick<ChangeLog, 'db' | 'log'>,
  followers: readonly RemoteFollower[],
): WaitForFollowers => {
  const headReaders = new Map<string, () => Promise<Positions>>() // by schema
  const headOf = async (schema: string): Promise<Position | undefined> => {
    const read = headReaders.get(schema) ?? headsReader(changeLog.db, [schema], AFTER_COMMIT_MS)
    headReaders.set(schema, read)
    return (await read())[schema]
  }
  const laggingUntilMs = new Map<string, number>() // by schema, of followers whose last wait has failed

  /** How long a write waits for a follower. While it is unavailable, not every write of a script may wait to the end. */
  function patienceMs(schema: string): number {
    const untilMs = laggingUntilMs.get(schema)
    if (untilMs === undefined) return AFTER_COMMIT_MS
    if (Date.now() < untilMs) return LAGGING_WAIT_MS
    laggingUntilMs.set(schema, Date.now() + LAGGING_MS)
    return AFTER_COMMIT_MS
  }

  async function follow<T>(
    schema: string,
    context: Context,
    step: (limited: Context) => Promise<T>,
  ): Promise<T> {
    try {
      const result = await step(withDeadline(context, patienceMs(schema)))
      laggingUntilMs.delete(schema)
      return result
    } catch (err) {
      const isLagging = isAway(err) && !context.signal.aborted // a client that leaves ends its wait
      if (isLagging && !laggingUntilMs.has(schema)) laggingUntilMs.set(schema, Date.now() + LAGGING_MS)
      throw err
    }
  }

  return async (written, context, schemas, options) => {
    const effects: Record<string, Position> = {}
    const limited = withDeadline(context)
    const reach = async (chain: readonly string[]): Promise<void> => {
      let last: { readonly schema: string; readonly position: Position | undefined } = {
        schema: changeLog.db.schema,
        position: written.position,
      }
      for (const [index, next] of chain.entries()) {
        const changes = followers.find(({ source }) => source.schema === next)?.changes
        if (!changes || !last.position) return
        const isAsked = options?.effects.includes(next) || index < chain.length - 1
        const reached = last
        const position = await follow(next, limited, async (context) => {
          await changes.reach(reached, context)
          return isAsked ? headOf(next) : undefined
        })
        if (position) effects[next] = position
        last = { schema: next, position }
      }
    }
    const chains = schemas ?? followers.map(({ source }) => source.schema)
    await Promise.all(chains.map((chain) => afterCommit(changeLog, reach([chain].flat()))))
    return options ? { ...written, effects } : written
  }
}
