import { encodeViews } from '@overlay/platform/kind-store'
import type { Db } from '@overlay/platform/postgres'
import type { EntityServiceService, Methods } from '@overlay/rpc'
import sql from 'sql-template-tag'

type View = Methods<EntityServiceService>['view']

/** So long a heartbeat counts. */
const connectedSeconds = 60

/** What this service knows about rows of others, by kind. */
export const viewsOf =
  (db: Db, own: View): View =>
  async (request, context) => {
    if (request.kind !== 'identities') return own(request, context)
    const { rows } = await db.query<{ id: string }>(
      sql`
      select identity_id as id from identity_connection
       where identity_id = any(${request.ids}) and seen_at > now() - make_interval(secs => ${connectedSeconds})`,
      'connected-identities',
    )
    const connected = new Set(rows.map(({ id }) => id))
    return encodeViews(
      request.ids.map((id) => (connected.has(id) ? { hasEdgeRouterConnection: true } : undefined)),
    )
  }
