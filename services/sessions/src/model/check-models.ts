import { setTimeout as delay } from 'node:timers/promises'
import { boundedLines, LINE_LIMITS, metrics } from '@overlay/process'
import { runPeriodically } from '@overlay/process/async'
import type { Logger } from 'pino'
import type { RouterChannel } from '../channel/router-channel.js'
import { MODEL_CHECK_MS, MODEL_RECHECK_MS } from '../limits.js'
import type { ModelComparison } from './compare-model.js'
import type { RouterModel } from './router-model.js'

export interface ModelChecksOptions {
  /** The routers of this replica that have subscribed. */
  readonly models: ReadonlyMap<RouterChannel, Pick<RouterModel, 'isSubscribed' | 'replace'>>
  readonly compare: (router: RouterChannel) => Promise<ModelComparison>
  readonly log: Logger
  readonly checkMs?: number
  readonly recheckMs?: number
}

/**
 * Compares the model of each router about once an hour, one after the other, and replaces a wrong one: routers confirm
 * nothing, so a single loss would stay.
 */
export function startModelChecks(options: ModelChecksOptions): AsyncDisposable {
  const { models, compare, log, checkMs = MODEL_CHECK_MS, recheckMs = MODEL_RECHECK_MS } = options
  const dueAt = new WeakMap<RouterChannel, number>()
  const noteFailure = boundedLines(log, 'data model of a router not compared', LINE_LIMITS, 'warn')
  const nextAt = (): number => performance.now() + checkMs * (0.5 + Math.random())

  async function check(router: RouterChannel, signal: AbortSignal): Promise<string> {
    if ((await compare(router)).count === 0) return 'equal'
    // a change that was on its way has arrived then
    await delay(recheckMs, undefined, { signal })
    const { count, differences } = await compare(router)
    if (count === 0) return 'equal'
    const byType: Record<string, number> = {}
    for (const { entityType } of differences.slice(0, 100)) byType[entityType] = (byType[entityType] ?? 0) + 1
    const { routerId } = router
    log.warn({ routerId, differences: count, first: byType }, 'data model of a router differs, replacing it')
    models.get(router)?.replace()
    return 'different'
  }

  return runPeriodically(Math.min(checkMs, 60_000) / 4, async (signal) => {
    for (const [router, model] of [...models]) {
      if (!router.features.comparesModel) continue
      const due = dueAt.get(router)
      if (due === undefined) dueAt.set(router, performance.now() + checkMs * Math.random())
      if (due === undefined || due > performance.now() || !model.isSubscribed() || signal.aborted) continue
      dueAt.set(router, nextAt())
      try {
        metrics.routerModelChecks.inc({ result: await check(router, signal) })
      } catch (err) {
        if (signal.aborted || router.channel.closed.aborted) continue
        metrics.routerModelChecks.inc({ result: 'failed' })
        noteFailure(router.routerId, { err, routerId: router.routerId })
      }
    }
  })
}
