import { metrics } from '@overlay/process'
import { REPLACED_WITHIN_MS, REPLACEMENTS } from '../limits.js'
import type { RouterChannel, RouterChannels } from './router-channel.js'

/** The routers that are connected to this replica, one channel each. */
export interface ChannelRegistry extends RouterChannels {
  /** A router that keeps replacing its own connection: several processes use its identity. */
  isContested(routerId: string): boolean
  /** Closes the channel of a router because a newer connection takes its place. */
  replace(routerId: string): void
  add(router: RouterChannel): void
  remove(router: RouterChannel): void
  closeAll(reason: string): void
}

export function openChannelRegistry(now: () => number = Date.now): ChannelRegistry {
  const channels = new Map<string, RouterChannel>()
  /** Times at which an open channel was replaced, by router. */
  const replacements = new Map<string, readonly number[]>()
  const recent = (routerId: string): readonly number[] =>
    replacements.get(routerId)?.filter((at) => at > now() - REPLACED_WITHIN_MS) ?? []
  const count = (): void => metrics.routersConnected.set(channels.size)

  return {
    get: (routerId) => channels.get(routerId),
    all: () => channels.values(),
    isContested: (routerId) => channels.has(routerId) && recent(routerId).length >= REPLACEMENTS,
    replace(routerId) {
      const router = channels.get(routerId)
      if (!router) return void replacements.delete(routerId)
      replacements.set(routerId, [...recent(routerId), now()])
      router.channel.close('replaced')
    },
    add(router) {
      channels.set(router.routerId, router)
      count()
    },
    remove(router) {
      if (channels.get(router.routerId) === router) channels.delete(router.routerId)
      count()
    },
    closeAll(reason) {
      for (const { channel } of channels.values()) channel.close(reason)
    },
  }
}
