import { type Db, onlyRow, type RowChange, type Tx } from '@overlay/platform'
import sql from 'sql-template-tag'
import { nothingSaid, type PostureData, type PostureResponse, withResponse } from '../domain/posture/data.js'

/**
 * Takes over what the endpoint of an API session says, in the order in which it does.
 * differs: stored, so that every replica judges alike and a restart forgets nothing.
 */
export async function takePosture(
  tx: Tx,
  identityId: string,
  apiSessionId: string,
  responses: readonly PostureResponse[],
): Promise<RowChange> {
  await tx.query(sql`
    insert into posture_data (identity_id, data) values (${identityId}, ${JSON.stringify(nothingSaid)})
        on conflict do nothing`)
  const { rows } = await tx.query<{ data: PostureData; at: Date }>(sql`
    select data, clock_timestamp() as at from posture_data where identity_id = ${identityId} for update`)
  const { data: before, at } = onlyRow(rows)
  const data = responses.reduce(
    (said, response) => withResponse(said, response, apiSessionId, at.toISOString()),
    before,
  )
  await tx.query(
    sql`update posture_data set data = ${JSON.stringify(data)} where identity_id = ${identityId}`,
  )
  return { kind: 'posture-data', id: identityId, before, after: data, told: { data } }
}

export async function postureDataOf(db: Db, identityId: string): Promise<PostureData> {
  const { rows } = await db.query<{ data: PostureData }>(
    sql`select data from posture_data where identity_id = ${identityId}`,
  )
  return rows[0]?.data ?? nothingSaid
}

/** With the sessions that were refused for it. */
export async function forgetPosture(tx: Tx, identityIds: readonly string[]): Promise<RowChange[]> {
  await tx.query(sql`delete from failed_request where identity_id = any(${identityIds})`)
  const { rows } = await tx.query<{ identityId: string; data: PostureData }>(sql`
    delete from posture_data where identity_id = any(${identityIds})
 returning identity_id as "identityId", data`)
  return rows.map(({ identityId, data }) => ({
    kind: 'posture-data',
    id: identityId,
    before: data,
    after: null,
    told: null,
  }))
}

const atOnce = 1000

/** For followers, in the order of identities. */
export async function* allPostureData(db: Db): AsyncIterable<{ id: string; json: object }> {
  for (let last = ''; ; ) {
    const { rows } = await db.query<{ id: string; data: PostureData }>(sql`
      select identity_id as id, data from posture_data where identity_id > ${last} order by id limit ${atOnce}`)
    for (const { id, data } of rows) yield { id, json: { data } }
    if (rows.length < atOnce) return
    last = rows.at(-1)?.id ?? last
  }
}
