import type { Outgoing, SubscribeToDataModelRequest } from '@overlay/channel'
import { metrics, type WriteLine } from '@overlay/process'
import { reconnect, withWatchdog } from '@overlay/process/async'
import { ownContext, type RouterModelPart } from '@overlay/rpc'
import type { RouterChannel } from '../channel/router-channel.js'
import type { SyncReport } from '../channel/router-status.js'
import { FULL_MODEL_MS, MODEL_PAUSES, MODEL_SILENCE_MS, SUBSCRIPTION_SECONDS } from '../limits.js'
import { changeSet, type FullState, fullState, type OwnEvents, syntheticSet } from './encode-model.js'
import type { ModelOwner, WithModel } from './full-models.js'
import type { PublishedKeys } from './published-keys.js'

export interface RouterModelDeps {
  readonly policy: ModelOwner
  readonly withModel: WithModel
  readonly keys: Pick<PublishedKeys, 'all' | 'version' | 'loaded'>
  /** All keys and revocations. */
  readonly own: () => OwnEvents
  /** Resolves when the router may have a full state again. */
  readonly turnOf: (routerId: string, signal: AbortSignal) => Promise<void>
  readonly sync: SyncReport
  readonly noteOutage: WriteLine
}

/** The subscription of one channel of a router. */
export interface RouterModel {
  subscribe(request: SubscribeToDataModelRequest): void
  isSubscribed(): boolean
  /** Changes of keys and revocations, encoded. */
  changed(change: Outgoing): void
  /** Sends a full state in place of what the router has. */
  replace(): void
  end(): void
}

/** What the router has, as policy counts it. */
interface Known {
  readonly timeline: string
  index: number
}

interface Subscription {
  id: string
  expiry: NodeJS.Timeout
  readonly stop: AbortController
  /** A full state is on its way, and not being sent yet. */
  awaitsFullState: boolean
}

/**
 * wire: a router subscribes again every five minutes, after a gap, and when it connects to another controller. Its
 * timeline is that of policy and the version of the keys: a router that was absent when keys changed gets a full state,
 * because nothing says which keys it has too many.
 */
export function openRouterModel(router: RouterChannel, deps: RouterModelDeps): RouterModel {
  const { policy, withModel, keys, own, turnOf, sync, noteOutage } = deps
  const { routerId, channel } = router
  let current: Subscription | undefined
  /** The newest full state of this channel, while its keys have been kept up to date. */
  let sentTimelineId: string | undefined
  let sent: Known | undefined
  let isSynced = false

  function end(): void {
    if (!current) return
    clearTimeout(current.expiry)
    current.stop.abort()
    current = undefined
    metrics.routerSubscriptions.dec()
  }
  function expire(): void {
    end()
    sentTimelineId = undefined
  }

  function start(id: string, seconds: number, known: Known | undefined): void {
    end()
    const stop = new AbortController()
    const expiry = setTimeout(expire, seconds * 1000)
    const subscription: Subscription = { id, expiry, stop, awaitsFullState: !known }
    current = subscription
    metrics.routerSubscriptions.inc()
    isSynced = false
    sync.started(router, 'model')
    void run(subscription, known)
  }
  function synced(): void {
    if (!isSynced) sync.done(router, 'model')
    isSynced = true
  }

  /** Sends what the router lacks, and then each change, until the signal is aborted. */
  async function run(subscription: Subscription, known: Known | undefined): Promise<void> {
    const { signal } = subscription.stop
    let has = known
    await reconnect({
      ...MODEL_PAUSES,
      signal,
      async connect({ works }) {
        has ??= await sendFullState(subscription, signal)
        works()
        if (await follow(has, subscription, signal, works)) has = undefined
        else throw new Error('policy has ended the changes of a router')
      },
      onOutage: (err) => noteOutage(routerId, { err, routerId }),
    })
  }

  async function sendFullState(subscription: Subscription, signal: AbortSignal): Promise<Known> {
    subscription.awaitsFullState = true
    await keys.loaded
    await channel.drained() // a router that does not read keeps no more than one full state in memory
    signal.throwIfAborted()
    await turnOf(routerId, signal)
    return withModel(routerId, signal, async (model) => {
      if (sent?.timeline === model.timeline && model.index < sent.index)
        throw new Error('the replica of policy has less than the router')
      let state: FullState | undefined
      const limit = setTimeout(() => channel.close('the peer does not read'), FULL_MODEL_MS)
      const compose = () => {
        subscription.awaitsFullState = false
        state = { model, own: own(), timelineId: `${model.timeline}.${keys.version()}` }
        return count('full', fullState(state, subscription.id))
      }
      await channel.sendLarge(compose).finally(() => clearTimeout(limit))
      const known = { timeline: model.timeline, index: model.index }
      sentTimelineId = state?.timelineId
      sent = known
      synced()
      return known
    })
  }

  /** Returns true when the router needs a full state. */
  async function follow(
    has: Known,
    subscription: Subscription,
    signal: AbortSignal,
    works: () => void,
  ): Promise<boolean> {
    const open = (limit: AbortSignal): AsyncIterable<RouterModelPart> =>
      policy.watchRouterModel({ routerId, ...has, once: false }, ownContext(limit))
    let parts: Uint8Array[] = []
    for await (const { isFull, isLast, events, index } of withWatchdog(MODEL_SILENCE_MS, open, signal)) {
      works()
      if (isFull) return true
      if (events.length > 0) parts.push(events)
      if (isLast && index > has.index) {
        const set = changeSet(parts, index, has.index, subscription.id)
        parts = []
        await channel.sendLarge(() => count('changes', set))
        has.index = index
      } else if (isLast && parts.length > 0)
        throw new Error(`changes up to ${index} for a router that has ${has.index}`)
      if (!isLast) continue
      sent = has
      synced()
    }
    return false
  }

  /** What policy needs to continue. Undefined: the router needs a full state. */
  function knownOf({ timelineId, currentIndex }: SubscribeToDataModelRequest): Known | undefined {
    const at = timelineId.lastIndexOf('.')
    if (at < 0 || currentIndex <= 0n || currentIndex > BigInt(Number.MAX_SAFE_INTEGER)) return undefined
    if (timelineId !== sentTimelineId && timelineId.slice(at + 1) !== keys.version()) return undefined
    return { timeline: timelineId.slice(0, at), index: Number(currentIndex) }
  }

  return {
    subscribe(request) {
      const { subscriptionId, subscriptionDurationSeconds, renew } = request
      const { least, most, untilRenewed } = SUBSCRIPTION_SECONDS
      const seconds = Math.min(Math.max(subscriptionDurationSeconds, least), most) + untilRenewed
      const isRenewed = renew && current?.id === subscriptionId
      const known = isRenewed ? undefined : knownOf(request)
      // routers of 1.7 subscribe twice when they connect: one full state answers both
      if (current && (isRenewed || (!known && current.awaitsFullState))) {
        clearTimeout(current.expiry)
        current.id = subscriptionId
        current.expiry = setTimeout(expire, seconds * 1000)
        return
      }
      // at once: policy may need time
      channel.sendLarge(() => count('keys', syntheticSet(own()))).catch(() => undefined) // closed
      start(subscriptionId, seconds, known)
    },
    isSubscribed: () => current !== undefined,
    changed(change) {
      if (current) channel.send(count('keys', change))
    },
    replace() {
      if (current) start(current.id, SUBSCRIPTION_SECONDS.most, undefined)
    },
    end,
  }
}

/** Counts what is sent. */
function count<M>(kind: string, message: M): M {
  metrics.routerModelMessages.inc({ kind })
  return message
}
