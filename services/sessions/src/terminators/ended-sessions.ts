import { terminator } from '@overlay/model'
import { runPeriodically } from '@overlay/platform/async'
import { deleteRows } from '@overlay/platform/kind-store'
import { batch } from '@overlay/platform/postgres'
import { ownContext } from '@overlay/rpc'
import type { Logger } from 'pino'
import sql, { type Sql } from 'sql-template-tag'
import type { Circuits } from '../circuits/circuits.js'
import { rememberEnded } from '../store/ended-terminator.js'
import { haveTerminators, orphanedTerminators } from '../store/router-terminator.js'
import type { WriteDeps } from './create-batch.js'

export interface SessionEndDeps extends WriteDeps {
  readonly circuits: Pick<Circuits, 'endOfTerminators'>
  readonly log: Logger
}

const PAGE = 500
const SWEEP_MS = 60_000

/** differs: terminators end with the bind session that they were created with, and circuits with their terminator. */
export function endWithSessions({ changeLog, circuits, log }: SessionEndDeps) {
  async function end(which: Sql): Promise<number> {
    const { result: ids } = await changeLog.write(ownContext(AbortSignal.timeout(60_000)), async (tx) => {
      const changes = await deleteRows(tx, terminator, which)
      const result = changes.map(({ id }) => id)
      await rememberEnded(tx, result)
      return { result, changes }
    })
    if (ids.length > 0) await circuits.endOfTerminators(ids)
    return ids.length
  }

  const endOf = batch<readonly string[], void>(async (lists) => {
    const ids = lists.flat()
    // every replica is told of every session, and most sessions have no terminators
    if (await haveTerminators(changeLog.db, ids)) await end(sql`session_id = any(${ids})`)
    return lists.map(() => undefined)
  })

  /** What a process that has stopped in between has left. */
  const sweeping = runPeriodically(SWEEP_MS, async () => {
    try {
      for (let left = PAGE; left === PAGE; ) {
        const ids = await orphanedTerminators(changeLog.db, PAGE)
        left = ids.length
        if (left > 0)
          await end(sql`id = any(${ids}) and not exists (select from session where session.id = session_id)`)
      }
    } catch (err) {
      log.warn({ err }, 'terminators of ended sessions not deleted; the next time deletes them')
    }
  })

  return {
    /** To be called after sessions have ended. */
    endOf,
    [Symbol.asyncDispose]: () => sweeping[Symbol.asyncDispose](),
  }
}
