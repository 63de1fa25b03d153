import { openLimit } from '@overlay/platform/async'
import type { Projection } from '@overlay/platform/change-log'
import { bestEffort } from '@overlay/platform/postgres'
import { type Context, Fault, type Positions } from '@overlay/rpc'

/**
 * Memory is usually some milliseconds behind the change logs that it follows. A request waits first, in one of these ways:
 *
 * | Wait | Memory has afterwards | For |
 * |---|---|---|
 * | `waitFor` | the positions of the request | requests that carry positions |
 * | `catchUp` | all that the owners had at the time of the call | management that depends on all of memory |
 * | `catchUpOwn` | all that this schema had at the time of the call | the caller's own writes to this schema |
 * | `ensureFresh` | all that policy and identity had two seconds ago | authorizations |
 *
 * These fail with TIMEOUT after two seconds, or when the signal is aborted. Lists answer from older memory rather than not
 * at all: `bestEffort` and `ensureReadable` only fail while nothing is loaded.
 */
export interface Waits {
  waitFor(positions: Positions, signal: AbortSignal): Promise<void>
  catchUp(signal: AbortSignal): Promise<void>
  catchUpOwn(signal: AbortSignal): Promise<void>
  ensureFresh(signal: AbortSignal): Promise<void>
  /** Another wait, which may time out. UNAVAILABLE before policy and identity are loaded for the first time. */
  bestEffort(wait: Promise<void>): Promise<void>
  /**
   * Best effort: `waitFor` for clients. For administrators, who may read before identity is loaded, memory has all that
   * these schemas had at the time of the call: those on which the answer depends. `heads` are those that a statement has
   * read since the request arrived, so that they need not be read again.
   */
  ensureReadable(context: Context, schemas: readonly string[], heads?: Positions): Promise<void>
  /** Memory has all that policy and identity had within the last two seconds. */
  isFresh(): boolean
  /** Memory has all that policy and identity had before this time. Infinity before they are loaded. */
  ageMs(): number
  /** The streams of policy and identity work. */
  isHeard(): boolean
}

/** What memory has of the change logs, by schema. */
export interface Progress {
  readonly positions: Positions
  /** Schemas whose rows are loaded now: memory mixes old rows and new ones. */
  readonly loading: ReadonlySet<string>
  isLoaded(): boolean
}

/** The schemas that can take access away. Without routers there is no session, so no wait is for sessions to load. */
export const accessSchemas: readonly string[] = ['policy', 'identity']
export const WAIT_MS = 2000

export function waitsOn(
  projections: readonly Projection[],
  { positions, loading, isLoaded }: Progress,
  waitMs: number,
): Waits {
  const bySchema = new Map(projections.map((projection) => [projection.schema, projection]))

  const catchUpWith = async (
    schemas: Iterable<string>,
    signal: AbortSignal,
    heads: Positions = {},
  ): Promise<void> => {
    using limit = openLimit(waitMs, signal)
    await Promise.all(
      [...schemas].map((schema) => {
        const [projection, head] = [bySchema.get(schema), heads[schema]]
        return head ? projection?.waitFor(head, limit.signal) : projection?.catchUp(limit.signal)
      }),
    )
  }
  const isBehind = ({ schema }: Projection, required: Positions): boolean => {
    const [current, position] = [positions[schema], required[schema]]
    const isAccess = accessSchemas.includes(schema)
    if (loading.has(schema) || (isAccess && !current)) return position !== undefined || isAccess
    return (
      position !== undefined &&
      !(current?.timeline === position.timeline && current.number >= position.number)
    )
  }

  const waits: Waits = {
    async waitFor(required, signal) {
      const behind = projections.filter((projection) => isBehind(projection, required))
      if (behind.length === 0) return
      using limit = openLimit(waitMs, signal)
      await Promise.all(
        behind.map((projection) => {
          const position = required[projection.schema]
          return position ? projection.waitFor(position, limit.signal) : projection.catchUp(limit.signal)
        }),
      )
    },
    catchUp: (signal) => catchUpWith(bySchema.keys(), signal),
    catchUpOwn: (signal) => catchUpWith(['policy'], signal),
    ensureFresh: async (signal) => (waits.isFresh() ? undefined : catchUpWith(accessSchemas, signal)),
    async bestEffort(wait) {
      await bestEffort('policy', wait)
      if (!isLoaded()) throw new Fault('UNAVAILABLE')
    },
    ensureReadable: ({ caller, positions, signal }, schemas, heads) =>
      caller.isAdmin
        ? bestEffort('policy', catchUpWith(schemas, signal, heads))
        : waits.bestEffort(waits.waitFor(positions, signal)),
    isFresh: () => accessSchemas.every((schema) => bySchema.get(schema)?.isFresh()),
    ageMs: () => Math.max(...accessSchemas.map((schema) => bySchema.get(schema)?.ageMs() ?? Infinity)),
    isHeard: () => accessSchemas.every((schema) => bySchema.get(schema)?.isHeard()),
  }
  return waits
}
