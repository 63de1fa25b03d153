import type { RouterDirectory } from '../routers/router-directory.js'
import type { RouterPresence } from '../routers/router-presence.js'
import type { LinkRow } from '../store/link.js'
import type { LinkTable } from './link-table.js'

export interface StaleLinksOptions {
  readonly table: Pick<LinkTable, 'all' | 'deleteStale'>
  readonly presence: Pick<RouterPresence, 'isOnline'>
  readonly routers: Pick<RouterDirectory, 'get'>
  /** A router that connects again before keeps its links. */
  readonly graceMs: number
}

/**
 * differs: links outlive a short disconnection of their source. Deletes the links whose source has been offline for some time or whose destination is deleted, and returns them. A
 * router that is online reports its links itself.
 */
export function openStaleLinks({
  table,
  presence,
  routers,
  graceMs,
}: StaleLinksOptions): () => Promise<readonly LinkRow[]> {
  let offlineSince = new Map<string, number>()
  return async () => {
    const now = performance.now()
    const since = new Map<string, number>()
    const ids: string[] = []
    for (const { id, sourceId, destinationId } of table.all()) {
      if (!presence.isOnline(sourceId) && !since.has(sourceId))
        since.set(sourceId, offlineSince.get(sourceId) ?? now)
      const offlineAt = since.get(sourceId)
      const isOver = offlineAt !== undefined && now - offlineAt >= graceMs
      if (isOver || !routers.get(destinationId)) ids.push(id)
    }
    offlineSince = since
    return ids.length > 0 ? table.deleteStale(ids) : []
  }
}
