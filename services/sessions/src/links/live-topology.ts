import type { RouterPresence } from '../control/router-presence.js'
import { openLinkGraph } from '../domain/link-graph.js'
import type { KnownRouters } from './known-routers.js'
import { type LinkTable, type LinkTableOptions, openLinkTable } from './link-table.js'
import type { Topology } from './topology.js'

export interface TopologyOptions extends Omit<LinkTableOptions, 'listener'> {
  readonly presence: Pick<RouterPresence, 'isOnline' | 'online' | 'onChange'>
  readonly routers: KnownRouters
}

/** The topology, and the links behind it. */
export interface LiveTopology extends Topology, AsyncDisposable {
  readonly table: LinkTable
}

/** Follows the links, the presence and the costs of routers of all replicas. */
export async function openTopology({
  presence,
  routers,
  ...options
}: TopologyOptions): Promise<LiveTopology> {
  const graph = openLinkGraph()
  function show(routerId: string): void {
    graph.setOnline(routerId, presence.isOnline(routerId))
    const router = routers.get(routerId)
    if (router) graph.setCosts(routerId, router)
  }
  const presences = presence.onChange({ routerChanged: show })
  const changes = routers.onChange((id, router) => router && graph.setCosts(id, router))
  for (const { routerId } of presence.online()) show(routerId)
  const table = await openLinkTable({
    ...options,
    listener: { changed: graph.setLink, deleted: ({ id }) => graph.deleteLink(id) },
  })
  return {
    table,
    isOnline: presence.isOnline,
    links: table.all,
    path: graph.path,
    async [Symbol.asyncDispose]() {
      presences[Symbol.dispose]()
      changes[Symbol.dispose]()
      await table[Symbol.asyncDispose]()
    },
  }
}
