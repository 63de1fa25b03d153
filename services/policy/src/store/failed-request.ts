import type { Database, Db, Tx } from '@overlay/platform/postgres'
import sql from 'sql-template-tag'
import { holdsIdentity } from './lock-identity.js'

/** wire: so many are remembered of each identity. */
const KEPT = 100
/** So many are shown that the answer fits a message. */
const MOST_BYTES = 8 * 1024 * 1024

/** No write that anybody follows: what was refused changes nothing. */
export const rememberFailed = (db: Database, identityId: string, request: object): Promise<void> =>
  db.transaction(undefined, async (tx) => {
    if (await holdsIdentity(tx, identityId)) await insertFailed(tx, identityId, request)
  })

async function insertFailed(tx: Tx, identityId: string, request: object): Promise<void> {
  await tx.query(
    sql`
    with made as (
         insert into failed_request (identity_id, request) values (${identityId}, ${JSON.stringify(request)}))
    delete from failed_request
     where identity_id = ${identityId}
       and id <= (select id from failed_request where identity_id = ${identityId}
                   order by id desc offset ${KEPT - 1} limit 1)`,
    'remember-failed',
  )
}

/** Oldest first, in wire shape; the newest if they are very large. */
export async function failedRequests(db: Db, identityId: string): Promise<object[]> {
  const { rows } = await db.query<{ at: Date; request: object }>(
    sql`
    select at, request
      from (select id, at, request, sum(octet_length(request::text)) over (order by id desc) as bytes
              from failed_request where identity_id = ${identityId}) as newest
     where bytes <= ${MOST_BYTES} order by id`,
  )
  return rows.map(({ at, request }) => ({ when: at.toISOString(), ...request }))
}
