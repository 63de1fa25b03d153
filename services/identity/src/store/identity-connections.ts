import type { Db } from '@overlay/platform/postgres'
import sql from 'sql-template-tag'

/**
 * True where the identity is connected to a router, as SQL over its table. A report counts for 75 s: routers send one each
 * 60 s, and it is saved within seconds.
 */
export const isConnected = sql`
  exists (select from identity_connection c
           where c.identity_id = identity.id and c.seen_at > now() - interval '75 seconds')`

/** Records that routers report connections of these identities. */
export async function saveConnections(tx: Db, identityIds: readonly string[]): Promise<void> {
  await tx.query(
    sql`
    insert into identity_connection (identity_id, seen_at)
    select id, now() from unnest(${identityIds}::text[]) as reported (id) order by id
        on conflict (identity_id) do update set seen_at = excluded.seen_at`,
    'save-connections',
  )
}
