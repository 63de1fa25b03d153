import { metrics } from '@overlay/process'
import { REPLACED_WITHIN_MS, REPLACEMENTS } from '../limits.js'
import type { RouterChannel } from './router-channel.js'

/** The routers that are connected to this replica, one channel each. */
export function openChannelRegistry(now: () => number = Date.now) {
  const channels = new Map<string, RouterChannel>()
  /** Times at which an open channel was replaced, by router. */
  const replacements = new Map<string, readonly number[]>()
  const recent = (routerId: string): readonly number[] =>
    replacements.get(routerId)?.filter((at) => at > now() - REPLACED_WITHIN_MS) ?? []
  const count = (): void => metrics.routersConnected.set(channels.size)

  return {
    get: (routerId: string): RouterChannel | undefined => channels.get(routerId),
    all: (): Iterable<RouterChannel> => channels.values(),
    /** A router that keeps replacing its own connection: several processes use its identity. */
    isContested: (routerId: string): boolean =>
      channels.has(routerId) && recent(routerId).length >= REPLACEMENTS,
    /** Closes the channel of a router because a newer connection takes its place. */
    replace(routerId: string): void {
      const router = channels.get(routerId)
      if (!router) return void replacements.delete(routerId)
      replacements.set(routerId, [...recent(routerId), now()])
      router.channel.close('replaced')
    },
    add(router: RouterChannel): void {
      channels.set(router.routerId, router)
      count()
    },
    remove(router: RouterChannel): void {
      if (channels.get(router.routerId) === router) channels.delete(router.routerId)
      count()
    },
    closeAll(reason: string): void {
      for (const { channel } of channels.values()) channel.close(reason)
    },
  }
}

export type ChannelRegistry = ReturnType<typeof openChannelRegistry>
