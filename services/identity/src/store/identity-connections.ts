import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'

/**
 * True where the identity is connected to a router, as SQL over its table. A report counts for 75 s: routers send one each
 * 60 s, and it is saved within seconds.
 */
export const isConnected = sql`
  exists (select from identity_connection c
           where c.identity_id = identity.id and c.seen_at > now() - interval '75 seconds')`

/**
 * Records that routers report connections of these identities. The lock of a new row keeps its identity until the row is
 * there, so that a delete of the identity finds it. An identity that is being deleted is skipped. Rows are locked in the
 * order of ids, because replicas of sessions report the same ones at the same time.
 */
export async function saveConnections(tx: Db, identityIds: readonly string[]): Promise<void> {
  await tx.query(
    sql`
    with locked as (
         select identity_id from identity_connection where identity_id = any(${identityIds}::text[])
          order by identity_id for no key update),
         known as (
         update identity_connection set seen_at = now() where identity_id in (select identity_id from locked)
         returning identity_id),
         fresh as (
         select id from identity
          where id = any(${identityIds}::text[]) and id not in (select identity_id from known)
            for key share skip locked)
    insert into identity_connection (identity_id, seen_at)
    select id, now() from fresh order by id
        on conflict (identity_id) do update set seen_at = excluded.seen_at`,
    'save-connections',
  )
}
