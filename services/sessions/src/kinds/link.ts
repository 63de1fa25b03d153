import { fabricReference, link } from '@overlay/model'
import { type Kind, kind } from '@overlay/platform/kind-store'
import sql from 'sql-template-tag'

interface Joined {
  readonly sourceName: string | null
  readonly destName: string | null
}

/** The links of all replicas. */
export const links = (): Kind =>
  kind<typeof link, Joined>(link, {
    joined: {
      sourceName: sql`(select name from router where router.id = source_router)`,
      destName: sql`(select name from router where router.id = dest_router)`,
    },
    view: async (_db, rows) =>
      rows.map(({ sourceRouter, sourceName, destRouter, destName }) => ({
        sourceRouter: fabricReference('routers', sourceRouter, sourceName ?? undefined),
        destRouter: fabricReference('routers', destRouter, destName ?? undefined),
      })),
  })
