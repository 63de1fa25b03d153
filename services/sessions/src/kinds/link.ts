import { fabricReference, link } from '@overlay/model'
import { notFound } from '@overlay/rpc'
import { type Kind, kind, required, type Seams } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import type { LinkAdministration } from '../links/links-concern.js'
import type { ShownConnection } from '../store/link.js'

interface Joined {
  readonly sourceName: string | null
  readonly destName: string | null
  readonly connections: readonly ShownConnection[]
}

/** The links of all replicas. Their concern changes and deletes them. */
export const links = (administration: LinkAdministration): Kind =>
  kind<typeof link, Joined>(link, seams, {
    operations: () => ({
      async update({ ref, json, mask }) {
        const { id } = required(ref)
        const { staticCost, down } = JSON.parse(json.toString()) as { staticCost?: number; down?: boolean }
        const settings = {
          ...(mask.includes('staticCost') && staticCost !== undefined && { staticCost }),
          ...(mask.includes('down') && down !== undefined && { isDown: down }),
        }
        if (!(await administration.setLink(id, settings))) throw notFound(link.called, id)
        return { id, position: undefined }
      },
      // wire: DELETE of an unknown link answers 200, and routers receive the fault
      async delete({ id }) {
        await administration.deleteLink(id)
        return { id, position: undefined }
      },
    }),
  })

const seams: Seams<typeof link, Joined> = {
  joined: {
    sourceName: sql`(select name from router where router.id = source_router)`,
    destName: sql`(select name from router where router.id = dest_router)`,
    connections: sql`connections`,
  },
  view: async (_db, rows) =>
    rows.map(({ sourceRouter, sourceName, destRouter, destName, connections }) => ({
      sourceRouter: fabricReference('routers', sourceRouter, sourceName ?? undefined),
      destRouter: fabricReference('routers', destRouter, destName ?? undefined),
      ...(connections.length > 0 && { connections }),
    })),
}
