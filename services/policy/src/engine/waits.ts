import { openLimit, untilAborted } from '@overlay/process/async'
import { type Context, Fault, type Positions } from '@overlay/rpc'
import type { Projection } from '@overlay/store/change-log'
import { isAtLeast, isSamePosition } from '@overlay/store/change-log'
import { bestEffort } from '@overlay/store/postgres'
import { accessSchemas, type openProgress } from './progress.js'

/**
 * Memory is usually some milliseconds behind the change logs that it follows. A request waits first, in one of these ways:
 *
 * | Wait | Memory has afterwards | For |
 * |---|---|---|
 * | `waitFor` | the positions of the request | requests that carry positions |
 * | `catchUp` | all that these owners, or all of them, had at the time of the call | what depends on so much of memory |
 * | `catchUpOwn` | all that this schema had at the time of the call | the caller's own writes to this schema |
 * | `ensureFresh` | all that policy and identity had two seconds ago | authorizations |
 *
 * These fail with TIMEOUT after two seconds, or when the call ends. Lists answer from older memory rather than not
 * at all: `bestEffort` and `ensureReadable` only fail while nothing is loaded.
 */
export interface Waits {
  waitFor(positions: Positions, call: Call): Promise<void>
  catchUp(call: Call, schemas?: readonly string[]): Promise<void>
  catchUpOwn(call: Call): Promise<void>
  ensureFresh(call: Call): Promise<void>
  /** Another wait, which may time out. UNAVAILABLE before policy and identity are loaded for the first time. */
  bestEffort(wait: Promise<void>): Promise<void>
  /**
   * Best effort: `waitFor` for clients. For administrators, who may read before identity is loaded, memory has all that
   * these schemas had at the time of the call: those on which the answer depends.
   */
  ensureReadable(context: Context, schemas: readonly string[]): Promise<void>
  /** Best effort: memory has these positions, which a statement has read with the rows. */
  ensureReads(heads: Positions, call: Call): Promise<void>
  /** Memory has all that policy and identity had within the last two seconds. */
  isFresh(): boolean
  /** Memory has all that policy and identity had before this time. Infinity before they are loaded. */
  ageMs(): number
  /** Policy and identity were loaded since the start: from then on, memory answers while they are away. */
  isLoaded(): boolean
  /** The streams of policy and identity work. */
  isHeard(): boolean
}

/** The signal of most calls is never needed. It is read when there is something to wait for. */
export type Call = Pick<Context, 'signal'>

export function waitsOn(
  projections: readonly Projection[],
  {
    positions,
    loading,
    isLoaded,
  }: Pick<ReturnType<typeof openProgress>, 'positions' | 'loading' | 'isLoaded'>,
  readHeads: () => Promise<Positions>,
  waitMs: number,
): Waits {
  const of = (schemas: readonly string[]) => projections.filter(({ schema }) => schemas.includes(schema))
  const access = of(accessSchemas)
  const own = of(['policy'])

  /** Without a position until it has all that its owner had at the call. */
  const reach = async (
    behind: readonly Projection[],
    { signal }: Call,
    required: Positions = {},
  ): Promise<void> => {
    using limit = openLimit(waitMs, signal)
    await Promise.all(
      behind.map((projection) => {
        const position = required[projection.schema]
        return position ? projection.waitFor(position, limit.signal) : projection.catchUp(limit.signal)
      }),
    )
  }
  const isBehind = ({ schema }: Projection, required: Positions): boolean => {
    const [current, position] = [positions[schema], required[schema]]
    const isAccess = accessSchemas.includes(schema)
    if (loading.has(schema) || (isAccess && !current)) return position !== undefined || isAccess
    return !isAtLeast(current, position)
  }
  /** Memory beyond a head may have commits that a failover has lost, or later ones: the owner knows. */
  const reachHeads = async (heads: Positions, schemas: readonly string[], call: Call): Promise<void> => {
    const others = of(schemas).filter(
      ({ schema }) => loading.has(schema) || !isSamePosition(positions[schema], heads[schema]),
    )
    if (others.length > 0) await reach(others, call)
  }
  const reachAll = async (schemas: readonly string[], { signal }: Call): Promise<void> => {
    using limit = openLimit(waitMs, signal)
    const heads = await Promise.race([readHeads(), untilAborted(limit.signal)])
    await reachHeads(heads, schemas, limit)
  }

  const waits: Waits = {
    async waitFor(required, call) {
      const behind = projections.filter((projection) => isBehind(projection, required))
      if (behind.length > 0) await reach(behind, call, required)
    },
    catchUp: (call, schemas = projections.map(({ schema }) => schema)) => reachAll(schemas, call),
    catchUpOwn: (call) => reach(own, call),
    ensureFresh: async (call) => (waits.isFresh() ? undefined : reach(access, call)),
    async bestEffort(wait) {
      await bestEffort('policy', wait)
      if (!isLoaded()) throw new Fault('UNAVAILABLE')
    },
    ensureReadable: (context, schemas) =>
      context.caller.isAdmin
        ? bestEffort('policy', reachAll(schemas, context))
        : waits.bestEffort(waits.waitFor(context.positions, context)),
    ensureReads: (heads, call) => bestEffort('policy', reachHeads(heads, Object.keys(heads), call)),
    isLoaded,
    isFresh: () => access.every((projection) => projection.isFresh()),
    ageMs: () => Math.max(...access.map((projection) => projection.ageMs())),
    isHeard: () => access.every((projection) => projection.isHeard()),
  }
  return waits
}
