import { openLinkGraph, type Path } from '../domain/link-graph.js'
import type { RouterDirectory } from '../routers/router-directory.js'
import type { RouterPresence } from '../routers/router-presence.js'
import { type LinkTable, type LinkTableOptions, openLinkTable } from './link-table.js'

/** Online routers, and the paths over the links of all replicas, in memory. */
export interface Topology {
  isOnline(routerId: string): boolean
  /** The cheapest path. A path from a router to itself has no links and costs nothing. */
  path(fromRouterId: string, toRouterId: string): Path | undefined
}

export interface TopologyOptions extends Omit<LinkTableOptions, 'listener'> {
  readonly presence: Pick<RouterPresence, 'isOnline' | 'online' | 'onChange'>
  readonly routers: Pick<RouterDirectory, 'get' | 'onChange'>
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
    path: graph.path,
    async [Symbol.asyncDispose]() {
      presences[Symbol.dispose]()
      changes[Symbol.dispose]()
      await table[Symbol.asyncDispose]()
    },
  }
}
