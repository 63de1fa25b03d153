import { boundedQueue, withWatchdog } from '@overlay/process/async'
import { type Methods, ownContext, type PolicyServiceService } from '@overlay/rpc'
import { FULL_MODEL_SILENCE_MS } from '../limits.js'
import type { PolicyModel } from './encode-model.js'

export type ModelOwner = Pick<Methods<PolicyServiceService>, 'watchRouterModel'>

/** Reads the model of a router and hands it over, few at a time: each is in memory until `use` has ended. */
export type WithModel = <T>(
  routerId: string,
  signal: AbortSignal,
  use: (model: PolicyModel) => Promise<T>,
) => Promise<T>

export function openFullModels(policy: ModelOwner, name: string, running: number): WithModel {
  const queue = boundedQueue({
    name,
    running,
    waiting: Number.POSITIVE_INFINITY, // one for each connected router, and one that is compared
  })
  return (routerId, signal, use) => queue(async () => use(await readModel(policy, routerId, signal)), signal)
}

async function readModel(policy: ModelOwner, routerId: string, signal: AbortSignal): Promise<PolicyModel> {
  const request = { routerId, timeline: '', index: 0, once: true }
  const open = (limit: AbortSignal) => policy.watchRouterModel(request, ownContext(limit))
  const parts: Uint8Array[] = []
  for await (const { isFull, isLast, events, timeline, index } of withWatchdog(
    FULL_MODEL_SILENCE_MS,
    open,
    signal,
  )) {
    if (events.length > 0) parts.push(events)
    if (isFull && isLast) return { parts, timeline, index }
  }
  signal.throwIfAborted()
  throw new Error('policy has ended a full state of a router early')
}
