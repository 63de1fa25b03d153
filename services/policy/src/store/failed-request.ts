import type { failedRequest, SchemaValue } from '@overlay/model'
import type { Database, Db, Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { FAILED_REQUESTS_BYTES } from '../limits.js'
import { lockIdentity } from './lock-identity.js'

/** As administrators see it. */
export type FailedRequest = SchemaValue<typeof failedRequest>

/** wire: how many requests of each identity are kept. */
const KEPT = 100

/** Saves a refused request. It changes nothing else, so it is not in the change log. */
export const saveFailedRequest = (
  db: Database,
  identityId: string,
  request: Omit<FailedRequest, 'when'>,
): Promise<void> =>
  db.transaction(undefined, async (tx) => {
    if (await lockIdentity(tx, identityId)) await insertFailedRequest(tx, identityId, request)
  })

async function insertFailedRequest(tx: Tx, identityId: string, request: object): Promise<void> {
  await tx.query(
    sql`
    with inserted as (
         insert into failed_request (identity_id, request) values (${identityId}, ${JSON.stringify(request)}))
    delete from failed_request
     where identity_id = ${identityId}
       and id <= (select id from failed_request where identity_id = ${identityId}
                   order by id desc offset ${KEPT - 1} limit 1)`,
    'save-failed-request',
  )
}

/** In wire shape, oldest first; the newest of them if all are too large. */
export async function failedRequests(db: Db, identityId: string): Promise<FailedRequest[]> {
  const { rows } = await db.query<{ at: Date; request: Omit<FailedRequest, 'when'> }>(
    sql`
    select at, request
      from (select id, at, request, sum(octet_length(request::text)) over (order by id desc) as bytes
              from failed_request where identity_id = ${identityId}) as newest
     where bytes <= ${FAILED_REQUESTS_BYTES} order by id`,
  )
  return rows.map(({ at, request }) => ({ when: at.toISOString(), ...request }))
}
