import { ctrlType, PeerState, type PeerStateChange, PeerStateChanges } from '@overlay/channel'
import { linkListenersIn } from '../channel/link-listeners.js'
import type { RouterChannel, RouterChannels } from '../channel/router-channel.js'
import { PEERS_GATHER_MS } from '../limits.js'
import type { RouterDirectory } from '../routers/router-directory.js'
import type { Presence, RouterPresence } from '../routers/router-presence.js'

export interface PeersOptions {
  readonly presence: Pick<RouterPresence, 'of' | 'online' | 'onChange'>
  readonly routers: Pick<RouterDirectory, 'get' | 'onChange'>
  /** The routers that are connected to this replica. */
  readonly channels: Pick<RouterChannels, 'all'>
  readonly gatherMs?: number
}

/**
 * Announces to the routers of this replica the routers of all replicas that they can have links with.
 * Gathers changes for some milliseconds and encodes them once for all routers. A router without link listeners is
 * mentioned only if it has had listeners before: no router dials it.
 */
export function openPeers({ presence, routers, channels, gatherMs = PEERS_GATHER_MS }: PeersOptions) {
  const announced = new Map<string, Buffer>() // by router, the last change
  const healthy = new Map<string, Buffer>() // of these, routers that are online
  const changed = new Set<string>()
  const joined = new Set<RouterChannel>()
  let timer: NodeJS.Timeout | undefined

  /** Undefined: nothing has changed. */
  function changeOf(routerId: string): Buffer | undefined {
    const [newest] = presence.of(routerId)
    const last = announced.get(routerId)
    const isRemoved = !newest && !routers.get(routerId)
    if (!last && !isRemoved && listenersOf(newest).length === 0) return undefined
    const change = newest
      ? encode({ id: routerId, state: PeerState.HEALTHY, ...addressOf(newest) })
      : encode({
          id: routerId,
          state: isRemoved ? PeerState.REMOVED : PeerState.UNHEALTHY,
        })
    if (last?.equals(change)) return undefined
    if (isRemoved) announced.delete(routerId)
    else announced.set(routerId, change)
    if (newest) healthy.set(routerId, change)
    else healthy.delete(routerId)
    return change
  }

  function flush(): void {
    timer = undefined
    const changes = new Map<string, Buffer>()
    for (const routerId of changed) {
      const change = changeOf(routerId)
      if (change) changes.set(routerId, change)
    }
    changed.clear()
    const bodyOfChanges = bodies(changes)
    const bodyOfAll = joined.size > 0 ? bodies(new Map([...changes, ...healthy])) : bodyOfChanges
    for (const router of channels.all()) {
      const body = (joined.has(router) ? bodyOfAll : bodyOfChanges)(router.routerId)
      if (body.length > 0) router.channel.send({ type: ctrlType.peerStateChanges, body })
    }
    joined.clear()
  }

  const schedule = (): void => {
    timer ??= setTimeout(flush, gatherMs)
  }
  const change = (routerId: string): void => {
    changed.add(routerId)
    schedule()
  }
  for (const { routerId } of presence.online()) changeOf(routerId)
  const presences = presence.onChange({ routerChanged: change })
  const deletions = routers.onChange((id, router) => {
    if (!router) change(id)
  })

  return {
    /** Announces all others to the router. */
    connected(router: RouterChannel): void {
      joined.add(router)
      schedule()
    },
    [Symbol.dispose]() {
      clearTimeout(timer)
      presences[Symbol.dispose]()
      deletions[Symbol.dispose]()
    },
  }
}

/** One body for all routers, without the change of the router itself. Concatenated messages of protobuf are one message. */
function bodies(changes: ReadonlyMap<string, Buffer>): (routerId: string) => Buffer {
  const whole = Buffer.concat([...changes.values()])
  return (routerId) =>
    changes.has(routerId)
      ? Buffer.concat([...changes].flatMap(([id, change]) => (id === routerId ? [] : [change])))
      : whole
}

const encode = (change: Partial<PeerStateChange>): Buffer =>
  Buffer.from(PeerStateChanges.encode(PeerStateChanges.fromPartial({ changes: [change] })).finish())

const addressOf = (presence: Presence) => ({ version: presence.version, listeners: listenersOf(presence) })

/** None where they are malformed: a replica of the former release may have stored such. */
const listenersOf = (presence: Presence | undefined) => linkListenersIn(presence?.linkListeners) ?? []
