import type { Db } from '@overlay/platform/postgres'
import sql from 'sql-template-tag'

/** A heartbeat counts for so long. */
const CONNECTED_SECONDS = 60

/** The identities among these that are connected to a router. */
export async function connectedIdentities(db: Db, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ id: string }>(
    sql`
      select identity_id as id from identity_connection
       where identity_id = any(${ids}) and seen_at > now() - make_interval(secs => ${CONNECTED_SECONDS})`,
    'connected-identities',
  )
  return new Set(rows.map(({ id }) => id))
}
