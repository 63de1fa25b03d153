import type { FabricEvents } from '@overlay/store/change-log'
import type { RouterPresence } from './router-presence.js'

export interface RouterEventsDeps {
  readonly presence: RouterPresence
  readonly events: FabricEvents
  /** Of this replica. Empty: it emits nothing. */
  readonly controllerId: string
}

/** Emits that a router has come online or gone offline. Every replica sees it, and one of them emits it. */
export function routerEvents({ presence, events, controllerId }: RouterEventsDeps): Disposable {
  /** The replica that each online router was connected to. */
  const replicaOf = new Map<string, string>()
  for (const { routerId, replicaId } of presence.online()) replicaOf.set(routerId, replicaId)

  /** Another replica emits for one that has died. */
  function isOwn(replicaId: string | undefined): boolean {
    const live = presence.replicas()
    if (replicaId !== undefined && live.has(replicaId)) return replicaId === controllerId
    return [...live].sort()[0] === controllerId
  }
  return presence.onChange({
    routerChanged(routerId) {
      const before = replicaOf.get(routerId)
      const after = presence.of(routerId)[0]?.replicaId
      if (after === undefined) replicaOf.delete(routerId)
      else replicaOf.set(routerId, after)
      const isOnline = after !== undefined
      if ((before !== undefined) === isOnline || !isOwn(after ?? before)) return
      events.emit({
        namespace: 'fabric.routers',
        event_type: isOnline ? 'router-online' : 'router-offline',
        router_id: routerId,
        router_online: isOnline,
      })
    },
  })
}
