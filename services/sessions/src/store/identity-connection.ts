import { identity } from '@overlay/model'
import { lockEntities } from '@overlay/store/change-log'
import type { Database, Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { CONNECTED_SECONDS } from '../limits.js'

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

/** Records that routers report connections of these identities, except deleted ones. */
export const saveConnections = (db: Database, identityIds: readonly string[]): Promise<void> =>
  db.transaction(undefined, async (tx) => {
    const deleted = (await lockEntities(tx, new Map([[identity.kind, new Set(identityIds)]]))).get(
      identity.kind,
    )
    const existing = identityIds.filter((id) => !deleted?.has(id))
    await tx.query(
      sql`
      insert into identity_connection (identity_id, seen_at)
      select id, now() from unnest(${existing}::text[]) as reported (id) order by id
          on conflict (identity_id) do update set seen_at = excluded.seen_at`,
      'save-connections',
    )
  })

export const deleteConnections = (tx: Tx, which: Sql) =>
  tx.query(sql`delete from identity_connection where ${which}`)
