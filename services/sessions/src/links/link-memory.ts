import type { LinkRow } from '../store/link.js'

export interface LinkListener {
  changed(link: LinkRow): void
  deleted(link: LinkRow): void
}

/** The version that the row had. */
export type DeletedLink = Pick<LinkRow, 'id' | 'version'>

/** A copy of the rows of all links. Changes may be delayed, duplicated and reordered. */
export function openLinkMemory(listener: LinkListener) {
  const links = new Map<string, LinkRow>()
  const byRouter = new Map<string, Set<string>>()
  const loads = new Set<Set<string>>() // ids that have changed since the load began
  let deletions = new Map<string, number>()
  let olderDeletions = new Map<string, number>()
  let versions = 0

  function put(row: LinkRow): void {
    const { id, version } = row
    if ((deletions.get(id) ?? olderDeletions.get(id) ?? 0) >= version) return
    const before = links.get(id)
    if (before && before.version >= version) return
    if (before) unlink(before)
    links.set(id, row)
    versions += version - (before?.version ?? 0)
    for (const routerId of [row.sourceId, row.destinationId]) {
      const ids = byRouter.get(routerId)
      if (ids) ids.add(id)
      else byRouter.set(routerId, new Set([id]))
    }
    listener.changed(row)
  }

  function unlink({ id, sourceId, destinationId }: LinkRow): void {
    for (const routerId of [sourceId, destinationId]) {
      const ids = byRouter.get(routerId)
      ids?.delete(id)
      if (ids?.size === 0) byRouter.delete(routerId)
    }
  }

  function remove(row: LinkRow): void {
    links.delete(row.id)
    versions -= row.version
    unlink(row)
    listener.deleted(row)
  }

  return {
    get: (id: string): LinkRow | undefined => links.get(id),
    all: (): Iterable<LinkRow> => links.values(),
    /** Links that begin or end at the router. */
    of: (routerId: string): readonly LinkRow[] =>
      [...(byRouter.get(routerId) ?? [])].flatMap((id) => links.get(id) ?? []),

    apply(changed: readonly LinkRow[], deleted: readonly DeletedLink[]): void {
      for (const row of changed) put(row)
      for (const { id, version } of deleted) {
        deletions.set(id, Math.max(version, deletions.get(id) ?? 0))
        const row = links.get(id)
        if (row && row.version <= version) remove(row)
      }
      for (const touched of loads) for (const { id } of [...changed, ...deleted]) touched.add(id)
    },

    /** Begins a read of all rows. What is applied before it ends is newer than its rows. */
    startLoad() {
      const touched = new Set<string>()
      loads.add(touched)
      return (rows: readonly LinkRow[]): void => {
        loads.delete(touched)
        const loaded = new Set(touched)
        for (const row of rows) {
          if (loaded.has(row.id)) continue
          loaded.add(row.id)
          put(row)
        }
        for (const row of [...links.values()]) if (!loaded.has(row.id)) remove(row)
      }
    },

    /** Equal to the sums of equal rows. */
    sums: () => ({ count: links.size, versions }),

    /** Forgets deletions before the last call: a change that is older than those no longer arrives. */
    forgetDeletions(): void {
      olderDeletions = deletions
      deletions = new Map()
    },
  }
}
