import { LinkListeners, type Outgoing, PeerState, PeerStateChanges } from '@overlay/channel'
import { expect, onTestFinished, test } from 'vitest'
import type { RouterChannel } from '../channel/router-channel.js'
import { NO_FEATURES } from '../domain/router-features.js'
import type { PresenceListener } from '../routers/router-presence.js'
import { openPeers } from './announce-peers.js'

const unsaid = { hostname: '', supportedProtocols: {}, syncStatus: '' }

const listenersOf = (address: string) => [
  { address, protocol: 'tls', costTags: [], groups: ['default'], localBinding: 'eth0' },
]

/** Routers of the network, some of them online here or on other replicas, and what the ones here are told. */
function startNetwork(...routerIds: string[]) {
  const rows = new Set(routerIds)
  const online = new Map<string, string>() // the address of its link listener, empty without one
  const channels = new Map<string, RouterChannel>()
  const bodies = new Map<string, Uint8Array[]>()
  const presences = new Set<PresenceListener>()
  const deletions = new Set<(id: string, router: undefined) => void>()
  const presenceOf = (routerId: string) => {
    const address = online.get(routerId)
    if (address === undefined) return []
    const listeners = address === '' ? [] : listenersOf(address)
    const linkListeners = Buffer.from(LinkListeners.encode({ listeners }).finish())
    return [
      {
        routerId,
        replicaId: 'c1',
        connectedAt: new Date(),
        linkListeners,
        version: 'v1.1.13',
        features: NO_FEATURES,
        ...unsaid,
      },
    ]
  }
  const listen = <T>(set: Set<T>, listener: T) => {
    set.add(listener)
    return { [Symbol.dispose]: () => void set.delete(listener) }
  }
  const peers = openPeers({
    presence: {
      of: presenceOf,
      online: () => [...online.keys()].flatMap(presenceOf),
      onChange: (listener) => listen(presences, listener),
    },
    routers: {
      get: (id) =>
        rows.has(id)
          ? {
              ...{ id, name: id, isEdge: true, isTunnelerEnabled: false },
              cost: 0,
              noTraversal: false,
              disabled: false,
              fingerprint: 'f',
              formerFingerprints: [],
              unverifiedFingerprint: undefined,
            }
          : undefined,
      onChange: (listener) => listen(deletions, listener),
    },
    channels: { all: () => channels.values() },
    gatherMs: 0,
  })
  onTestFinished(() => peers[Symbol.dispose]())
  const changed = (routerId: string) => {
    for (const { routerChanged } of presences) routerChanged?.(routerId)
  }
  return {
    bodies,
    /** Connects to another replica. */
    appear(routerId: string, address = routerId) {
      online.set(routerId, address)
      changed(routerId)
    },
    connect(routerId: string, address = routerId) {
      const sent: Uint8Array[] = []
      bodies.set(routerId, sent)
      const channel = { send: ({ body }: Outgoing) => void sent.push(body ?? Buffer.alloc(0)) }
      const router = { routerId, channel } as unknown as RouterChannel
      channels.set(routerId, router)
      this.appear(routerId, address)
      peers.connected(router)
    },
    disconnect(routerId: string) {
      online.delete(routerId)
      channels.delete(routerId)
      changed(routerId)
    },
    delete(routerId: string) {
      rows.delete(routerId)
      for (const listener of deletions) listener(routerId, undefined)
    },
    /** Changes that the router has been told since the last call: `message: state of router`. */
    async told(routerId: string) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      const messages = bodies.get(routerId)?.splice(0) ?? []
      return messages.map((body) =>
        PeerStateChanges.decode(body).changes.map(({ id, state }) => `${id} ${PeerState[state]}`),
      )
    },
  }
}

test('a router that connects is told all others at once, and they are told it', async () => {
  const network = startNetwork('a', 'b', 'c')
  network.appear('elsewhere')
  network.connect('a')
  network.connect('b')
  network.connect('c')
  expect(await network.told('a')).toEqual([['elsewhere HEALTHY', 'b HEALTHY', 'c HEALTHY']])
  expect(await network.told('b')).toEqual([['elsewhere HEALTHY', 'a HEALTHY', 'c HEALTHY']])
  network.connect('d')
  expect(await network.told('a')).toEqual([['d HEALTHY']])
  expect(await network.told('d')).toEqual([['elsewhere HEALTHY', 'a HEALTHY', 'b HEALTHY', 'c HEALTHY']])
})

test('routers receive one encoding of the same change, with the listeners as they were received', async () => {
  const network = startNetwork()
  network.connect('a')
  network.connect('b')
  await network.told('a')
  await network.told('b')
  network.appear('c', 'tls:c:6000')
  await new Promise((resolve) => setTimeout(resolve, 5))
  const [[one], [other]] = [network.bodies.get('a') ?? [], network.bodies.get('b') ?? []]
  expect(one).toBe(other)
  expect(PeerStateChanges.decode(one ?? Buffer.alloc(0)).changes).toEqual([
    { id: 'c', version: 'v1.1.13', state: PeerState.HEALTHY, listeners: listenersOf('tls:c:6000') },
  ])
})

test('a router that disconnects is unhealthy, one that is deleted is removed', async () => {
  const network = startNetwork('a', 'b', 'c')
  for (const id of ['a', 'b', 'c']) network.connect(id)
  await network.told('a')
  network.disconnect('b')
  expect(await network.told('a')).toEqual([['b UNHEALTHY']])
  network.delete('b')
  network.delete('c')
  network.disconnect('c')
  expect(await network.told('a')).toEqual([['b REMOVED', 'c REMOVED']])
})

test('a router that was deleted while it was offline is removed', async () => {
  const network = startNetwork('a', 'b')
  network.connect('a')
  network.delete('b')
  expect(await network.told('a')).toEqual([['b REMOVED']])
})

test('a change that says nothing new is not sent', async () => {
  const network = startNetwork('a', 'b')
  network.connect('a')
  network.connect('b')
  await network.told('a')
  network.appear('b')
  expect(await network.told('a')).toEqual([])
  network.disconnect('b')
  network.connect('b')
  expect(await network.told('a')).toEqual([])
  network.appear('b', 'elsewhere')
  expect(await network.told('a')).toEqual([['b HEALTHY']])
})

test('a router without link listeners is mentioned once it loses them', async () => {
  const network = startNetwork('a', 'b')
  network.connect('a')
  network.connect('b', '')
  expect(await network.told('a')).toEqual([])
  expect(await network.told('b')).toEqual([['a HEALTHY']])
  network.appear('b', 'here')
  expect(await network.told('a')).toEqual([['b HEALTHY']])
  network.appear('b', '')
  expect(await network.told('a')).toEqual([['b HEALTHY']])
})
