import type { Change, Context, Position } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { onlyRow, type Tx } from './database.js'

/** One row that a transaction made, changed or removed. */
export interface RowChange {
  readonly kind: string
  readonly id: string
  /** For the audit, free of secrets; null: it was not there before, or is gone after. */
  readonly before: object | null
  readonly after: object | null
  /** What followers get; null: deleted. Absent: nobody follows this kind. */
  readonly told?: object | null | undefined
  /** By whom, where a transaction writes for several requests. */
  readonly by?: Actor | undefined
}

export type Actor = Pick<Context, 'caller' | 'requestId'>

/** What followers have to hear of a transaction. */
export interface Appended {
  readonly position: Position
  readonly changes: readonly Change[]
}

/** The last statement of a transaction: from here to the commit nobody else can append to this schema. */
export async function append(
  tx: Tx,
  context: Actor,
  rows: readonly RowChange[],
): Promise<Appended | undefined> {
  if (rows.length === 0) return undefined
  const followed = rows.filter(({ told }) => told !== undefined)
  const list = JSON.stringify(
    rows.map(({ by: { caller, requestId } = context, ...row }) => ({
      ...row,
      followed: row.told !== undefined,
      identity_id: caller.identityId,
      request_id: requestId,
    })),
  )
  if (followed.length === 0) {
    await tx.query(
      sql`
      insert into audit (kind, entity_id, before, after, identity_id, request_id)
      select kind, id, before, after, identity_id, request_id
        from jsonb_to_recordset(${list}::jsonb)
          as (kind text, id text, before jsonb, after jsonb, identity_id text, request_id text)`,
      'append-audit',
    )
    return undefined
  }
  const { rows: heads } = await tx.query<Position & { at: Date }>(
    sql`
    with list as (
         select *, sum(followed::int) over (order by place) as nth
           from rows from (jsonb_to_recordset(${list}::jsonb)
                as (kind text, id text, before jsonb, after jsonb, told jsonb, followed boolean,
                    identity_id text, request_id text))
                with ordinality as list (
                kind, id, before, after, told, followed, identity_id, request_id, place)),
         head as materialized (
         select timeline, number, at, number - ${followed.length}::int as start
           from advance(${followed.length}::int)),
         audited as (
         insert into audit (number, kind, entity_id, before, after, identity_id, request_id, at)
         select case when followed then start + nth end, kind, id, before, after, identity_id, request_id, at
           from list, head),
         changed as (
         insert into change (number, kind, entity_id, entity, at)
         select start + nth, kind, id, told, at from list, head where followed)
  select timeline, number, at from head`,
    'append',
  )
  const { timeline, number, at } = onlyRow(heads)
  const start = number - followed.length
  const changes = followed.map(({ kind, id, told }, index) => ({
    kind,
    id,
    json: Buffer.from(told ? JSON.stringify(told) : ''),
    atMs: at.getTime(),
    number: start + index + 1,
  }))
  return { position: { timeline, number }, changes }
}
