import { invalid } from '@overlay/rpc'
import type { RowChange } from '@overlay/store/change-log'
import { allPages } from '@overlay/store/kind-store'
import { type Db, onlyRow, type Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import {
  emptyPosture,
  type PostureData,
  type PostureResponse,
  postureBytes,
  withoutEnded,
  withResponse,
} from '../domain/posture/posture-data.js'
import { POSTURE_BUDGET_BYTES } from '../limits.js'

/**
 * Saves the responses of an endpoint, the one of an API session, in their order. Responses to checks that do not exist
 * are dropped. Data beyond the budget of an identity is refused, unless there is less of it than before.
 * differs: stored, so that every replica evaluates alike and a restart forgets nothing.
 */
export const savePosture = (
  tx: Tx,
  identityId: string,
  apiSessionId: string,
  responses: readonly PostureResponse[],
  endedApiSessions: ReadonlySet<string>,
): Promise<ChangedPosture> =>
  changePosture(tx, identityId, async (before, at) => {
    const next = responses.reduce((data, response) => withResponse(data, response, apiSessionId, at), before)
    const missing = await missingChecks(
      tx,
      next.processes.map(({ checkId }) => checkId),
    )
    const data = withoutEnded(next, missing, endedApiSessions)
    const bytes = postureBytes(data)
    if (bytes > POSTURE_BUDGET_BYTES && bytes > postureBytes(before))
      throw invalid(
        'postureResponse',
        `all endpoints of an identity together may say at most ${POSTURE_BUDGET_BYTES} bytes of themselves`,
        bytes,
      )
    return data
  })

async function missingChecks(tx: Tx, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const missing = new Set(ids)
  if (missing.size === 0) return missing
  const { rows } = await tx.query<{ id: string }>(
    sql`select id from posture_check where id = any(${[...missing]})`,
  )
  for (const { id } of rows) missing.delete(id)
  return missing
}

export interface ChangedPosture {
  readonly before: PostureData
  readonly data: PostureData
  readonly change: RowChange
}

export async function changePosture(
  tx: Tx,
  identityId: string,
  next: (before: PostureData, at: string) => PostureData | Promise<PostureData>,
): Promise<ChangedPosture> {
  await tx.query(sql`
    insert into posture_data (identity_id, data) values (${identityId}, ${JSON.stringify(emptyPosture)})
        on conflict do nothing`)
  const { rows } = await tx.query<{ data: PostureData; at: Date; lapsedAt: Date | null }>(sql`
    select data, clock_timestamp() as at, ${lapsedAtOf} from posture_data
     where identity_id = ${identityId} for update`)
  const { data: before, at, lapsedAt } = onlyRow(rows)
  const data = await next(before, at.toISOString())
  await tx.query(
    sql`update posture_data set data = ${JSON.stringify(data)} where identity_id = ${identityId}`,
  )
  const payload = { data, lapsedAt }
  return { before, data, change: { kind: 'posture-data', id: identityId, before, after: data, payload } }
}

/** Null: no lapse is reported. */
const lapsedAtOf = sql`nullif(told_at, '-infinity') as "lapsedAt"`

/**
 * Appends the posture of these identities to the change log again, since a second factor has lapsed.
 * Several replicas may call this for the same lapse: the first one appends.
 */
export async function touchLapsed(tx: Tx, lapsed: ReadonlyMap<string, number>): Promise<RowChange[]> {
  const { rows } = await tx.query<{ id: string; data: PostureData; lapsedAt: Date }>(sql`
    with lapsed as (
         select p.identity_id, to_timestamp(lapse.at / 1000) as at
           from posture_data p
           join unnest(${[...lapsed.keys()]}::text[], ${[...lapsed.values()]}::float8[]) as lapse (id, at)
             on lapse.id = p.identity_id
          where p.told_at < to_timestamp(lapse.at / 1000)
          order by p.identity_id for update of p)
    update posture_data p set told_at = lapsed.at from lapsed where p.identity_id = lapsed.identity_id
 returning p.identity_id as id, p.data, p.told_at as "lapsedAt"`)
  return rows.map(
    ({ id, data, lapsedAt }): RowChange => ({
      kind: 'posture-data',
      id,
      before: {},
      after: { lapsedAt }, // nothing else has changed
      payload: { data, lapsedAt },
    }),
  )
}

export const postureDataOf = async (db: Db, identityId: string): Promise<PostureData> =>
  (await postureDataOfAll(db, [identityId])).get(identityId) ?? emptyPosture

/** By identity; identities without a row are missing. */
export async function postureDataOfAll(
  db: Db,
  identityIds: readonly string[],
): Promise<ReadonlyMap<string, PostureData>> {
  if (identityIds.length === 0) return new Map()
  const { rows } = await db.query<{ id: string; data: PostureData }>(sql`
    select identity_id as id, data from posture_data where identity_id = any(${identityIds})`)
  return new Map(rows.map(({ id, data }) => [id, data]))
}

/** Deletes the identities' failed requests too. */
export async function deletePosture(tx: Tx, identityIds: readonly string[]): Promise<RowChange[]> {
  await tx.query(sql`delete from failed_request where identity_id = any(${identityIds})`)
  const { rows } = await tx.query<{ identityId: string; data: PostureData }>(sql`
    delete from posture_data where identity_id = any(${identityIds})
 returning identity_id as "identityId", data`)
  return rows.map(
    ({ identityId, data }): RowChange => ({
      kind: 'posture-data',
      id: identityId,
      before: data,
      after: null,
      payload: null,
    }),
  )
}

/** Loads all rows for followers, or those with these ids. */
export async function* loadPostureData(
  db: Db,
  ids?: readonly string[],
): AsyncIterable<{ id: string; json: object }> {
  for await (const { id, ...json } of eachPostureData(db, ids)) yield { id, json }
}

/** In the order of identities. */
export function eachPostureData(db: Db, ids?: readonly string[]) {
  const named = ids ? sql`identity_id = any(${ids})` : sql`true`
  return allPages<{ id: string; data: PostureData; lapsedAt: Date | null }>((last, limit) =>
    db.query(sql`
      select identity_id as id, data, ${lapsedAtOf} from posture_data
       where identity_id > ${last?.id ?? ''} and ${named} order by id limit ${limit}`),
  )
}
