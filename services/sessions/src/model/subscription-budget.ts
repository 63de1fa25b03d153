import { setTimeout as delay } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import {
  FULL_MODEL_REPEAT_MS,
  FULL_MODELS_IN_A_ROW,
  MOST_SUBSCRIBERS,
  MOST_SUBSCRIPTIONS,
  SUBSCRIPTIONS_WITHIN_MS,
} from '../limits.js'

/** What each router may ask for, over all of its connections to this replica. */
export interface SubscriptionBudget {
  /** False: the router has subscribed too often. */
  take(routerId: string): boolean
  /** Resolves when the router may have a full state, which then counts. Throws when the signal is aborted. */
  turnOf(routerId: string, signal: AbortSignal): Promise<void>
}

export interface BudgetOptions {
  readonly repeatMs?: number
  /** Milliseconds. */
  readonly now?: () => number
}

export function openSubscriptionBudget({
  repeatMs = FULL_MODEL_REPEAT_MS,
  now = () => performance.now(),
}: BudgetOptions = {}): SubscriptionBudget {
  const times = new LRUCache<string, readonly number[]>({ max: MOST_SUBSCRIBERS })
  const fullTimes = new LRUCache<string, readonly number[]>({ max: MOST_SUBSCRIBERS })
  return {
    take(routerId) {
      const recent = (times.get(routerId) ?? []).filter((at) => at > now() - SUBSCRIPTIONS_WITHIN_MS)
      if (recent.length >= MOST_SUBSCRIPTIONS) return false
      times.set(routerId, [...recent, now()])
      return true
    },
    async turnOf(routerId, signal) {
      const recent = fullTimes.get(routerId) ?? []
      const [first] = recent
      if (first !== undefined && recent.length === FULL_MODELS_IN_A_ROW)
        await delay(Math.max(0, first + repeatMs - now()), undefined, { signal })
      signal.throwIfAborted()
      fullTimes.set(routerId, [...recent, now()].slice(-FULL_MODELS_IN_A_ROW))
    },
  }
}
