import { terminator } from '@overlay/model'
import { metrics } from '@overlay/process'
import { ownContext } from '@overlay/rpc'
import type { Actor } from '@overlay/store/change-log'
import { deleteRows } from '@overlay/store/kind-store'
import { batch } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import {
  type InvalidTerminator,
  lockSessions,
  storedTerminators,
  unchangedSince,
} from '../store/router-terminator.js'
import { rememberEnded } from '../store/terminator.js'
import { actorOf } from './actor.js'
import type { EndCircuits, WriteDeps } from './create-terminators.js'

export interface TerminatorRemoval {
  readonly ids: readonly string[]
  /** The router that asks. */
  readonly routerId: string
  readonly by: Actor
}

export interface RemoverDeps extends WriteDeps {
  readonly endCircuits: EndCircuits
}

/**
 * Deletes terminators of a router. Those that do not exist are deleted already.
 * differs: returns the ids of terminators of other routers, which stay.
 */
export function openTerminatorRemover(
  deps: RemoverDeps,
): (removal: TerminatorRemoval) => Promise<readonly string[]> {
  const run = batch<TerminatorRemoval, readonly string[]>((removals) => removeAll(deps, removals))
  return async (removal) => {
    const foreign = await run(removal)
    if (foreign.length > 0) metrics.routerMessagesForbidden.inc({ subject: 'terminator' })
    return foreign
  }
}

async function removeAll(
  { changeLog, endCircuits }: RemoverDeps,
  removals: readonly TerminatorRemoval[],
): Promise<readonly (readonly string[])[]> {
  const stored = await storedTerminators(
    changeLog.db,
    removals.flatMap(({ ids }) => ids),
  )
  const isForeign = (id: string, routerId: string): boolean =>
    stored.has(id) && stored.get(id)?.routerId !== routerId
  const own = removals.flatMap(({ ids, routerId, by }) =>
    ids.filter((id) => stored.get(id)?.routerId === routerId).map((id) => ({ id, routerId, by })),
  )
  if (own.length > 0) {
    const { result: ended } = await changeLog.write(ownContext(AbortSignal.timeout(60_000)), async (tx) => {
      const which = sql`
        (id, router_id) in (select * from unnest(${own.map(({ id }) => id)}::text[],
                                                 ${own.map(({ routerId }) => routerId)}::text[]))`
      const actors = new Map(own.map(({ id, by }) => [id, by]))
      const deleted = await deleteRows(tx, terminator, which)
      const sessionOf = (id: string): string | null => stored.get(id)?.sessionId ?? null
      const ids = deleted.map(({ id }) => id)
      const sessions = await lockSessions(
        tx,
        ids.flatMap((id) => sessionOf(id) ?? []),
      )
      const result = ids.filter((id) => sessionOf(id) !== null && !sessions.has(sessionOf(id) ?? ''))
      await rememberEnded(tx, result)
      return {
        result,
        changes: deleted.map((change) => ({ ...change, by: actors.get(change.id) })),
      }
    })
    // routers remove the terminators of ended sessions, too: the circuits to them end either way
    if (ended.length > 0) await endCircuits(ended)
  }
  return removals.map(({ ids, routerId }) => ids.filter((id) => isForeign(id, routerId)))
}

/**
 * Deletes terminators that their routers do not know.
 * differs: those that have changed since their validation began stay.
 */
export function openInvalidRemover({ changeLog }: WriteDeps) {
  return batch<readonly InvalidTerminator[], void>(async (lists) => {
    const invalid = lists.flat()
    await changeLog.write(ownContext(AbortSignal.timeout(60_000)), async (tx) => {
      const routers = new Map(invalid.map(({ id, routerId }) => [id, actorOf(routerId)]))
      const deleted = await deleteRows(tx, terminator, unchangedSince(invalid))
      return {
        result: undefined,
        changes: deleted.map((change) => ({ ...change, by: routers.get(change.id) })),
      }
    })
    return lists.map(() => undefined)
  })
}
