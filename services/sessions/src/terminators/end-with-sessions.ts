import { terminator } from '@overlay/model'
import { coalesced, runPeriodically } from '@overlay/process/async'
import { ownContext } from '@overlay/rpc'
import { deleteRows } from '@overlay/store/kind-store'
import { batch } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import sql, { type Sql } from 'sql-template-tag'
import { ORPHAN_PAGE, ORPHAN_SWEEP_MS } from '../limits.js'
import { haveTerminators, ORPHANED, orphanedTerminators, WITHOUT_PLACE } from '../store/router-terminator.js'
import { rememberEnded } from '../store/terminator.js'
import type { EndCircuits, WriteDeps } from './create-terminators.js'

export interface SessionEndDeps extends WriteDeps {
  readonly endCircuits: EndCircuits
  readonly log: Logger
}

/**
 * differs: terminators end with the bind session that they were created with, or with the last terminator of an
 * administrator for their router and service, and circuits with their terminator.
 */
export function endWithSessions({ changeLog, endCircuits, log }: SessionEndDeps) {
  async function end(which: Sql): Promise<number> {
    const { result: ids } = await changeLog.write(ownContext(AbortSignal.timeout(60_000)), async (tx) => {
      const changes = await deleteRows(tx, terminator, which)
      const result = changes.map(({ id }) => id)
      await rememberEnded(tx, result)
      return { result, changes }
    })
    if (ids.length > 0) await endCircuits(ids)
    return ids.length
  }

  const endOf = batch<readonly string[], void>(async (lists) => {
    const ids = lists.flat()
    // every replica is notified of every session, and most sessions have no terminators
    if (await haveTerminators(changeLog.db, ids)) await end(sql`session_id = any(${ids})`)
    return lists.map(() => undefined)
  })

  const endWithoutPlace = coalesced(async () => {
    try {
      await end(WITHOUT_PLACE)
    } catch (err) {
      log.warn({ err }, 'terminators of routers not deleted; the next time deletes them')
    }
  })

  /** What a process that has stopped in between has left. */
  const sweeping = runPeriodically(ORPHAN_SWEEP_MS, async () => {
    try {
      for (let left = ORPHAN_PAGE; left === ORPHAN_PAGE; ) {
        const ids = await orphanedTerminators(changeLog.db, ORPHAN_PAGE)
        left = ids.length
        if (left > 0) await end(sql`id = any(${ids}) and ${ORPHANED}`)
      }
    } catch (err) {
      log.warn({ err }, 'terminators of ended sessions not deleted; the next time deletes them')
    }
  })

  return {
    /** To be called after sessions have ended. */
    endOf,
    /** To be called after terminators of administrators are deleted or moved. */
    endWithoutPlace,
    [Symbol.asyncDispose]: () => sweeping[Symbol.asyncDispose](),
  }
}
