import { runPeriodically } from '@overlay/process/async'
import type { Database } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import type { TerminatorCosts } from '../domain/terminator-costs.js'
import { CREDIT_MS, FLUSH_COSTS_MS } from '../limits.js'
import { circuitsOfReplica, deleteCostsOf, saveCosts } from '../store/terminator-cost.js'

export interface FlushDeps {
  readonly db: Database
  readonly replicaId: string
  /** Controller ids of the replicas that run. */
  readonly replicas: () => ReadonlySet<string>
  readonly costs: TerminatorCosts
  readonly log: Logger
  readonly flushMs?: number
  readonly creditMs?: number
}

/**
 * Shares the dynamic costs of this replica with the others and with the APIs. Nothing is saved while nothing changes. Once
 * a minute, circuits are counted in the database: any replica ends them.
 */
export function flushCosts(deps: FlushDeps): AsyncDisposable {
  const { db, replicaId, replicas, costs, log, flushMs = FLUSH_COSTS_MS, creditMs = CREDIT_MS } = deps
  let isClean = false
  const pending = new Map<string, number>()
  const flush = async (): Promise<void> => {
    try {
      if (!isClean) await deleteCostsOf(db, 'one', [replicaId]) // of an earlier run
      isClean = true
      for (const [id, cost] of costs.changed()) pending.set(id, cost)
      if (pending.size === 0) return
      await saveCosts(db, replicaId, pending)
      pending.clear()
    } catch (err) {
      log.warn({ err }, 'costs of terminators not saved; the next time saves them')
    }
  }
  const credit = async (): Promise<void> => {
    costs.credit()
    try {
      costs.recount(await circuitsOfReplica(db, replicaId))
      await deleteCostsOf(db, 'others', [...replicas(), replicaId])
    } catch (err) {
      log.warn({ err }, 'costs of terminators not corrected; the next minute corrects them')
    }
  }
  const [flushing, crediting] = [runPeriodically(flushMs, flush), runPeriodically(creditMs, credit)]
  return {
    async [Symbol.asyncDispose]() {
      await flushing[Symbol.asyncDispose]()
      await crediting[Symbol.asyncDispose]()
      await deleteCostsOf(db, 'one', [replicaId]).catch((err: unknown) =>
        log.debug({ err }, 'costs not deleted'),
      )
    },
  }
}
