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
}

/** What followers have to hear of a transaction. */
export interface Appended {
  readonly position: Position
  readonly changes: readonly Change[]
}

/** The last statement of a transaction: from here to the commit nobody else can append to this schema. */
export async function append(
  tx: Tx,
  { caller, requestId }: Context,
  rows: readonly RowChange[],
): Promise<Appended | undefined> {
  if (rows.length === 0) return undefined
  const followed = rows.filter(({ told }) => told !== undefined)
  if (followed.length === 0) {
    await tx.query(
      sql`
      insert into audit (kind, entity_id, before, after, identity_id, request_id)
      select kind, id, before, after, ${caller.identityId}, ${requestId}
        from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as (kind text, id text, before jsonb, after jsonb)`,
      'append-audit',
    )
    return undefined
  }
  const list = JSON.stringify(rows.map((row) => ({ ...row, followed: row.told !== undefined })))
  const { rows: heads } = await tx.query<Position & { at: Date }>(
    sql`
    with list as (
         select kind, id, before, after, told, followed, sum(followed::int) over (order by place) as nth
           from rows from (jsonb_to_recordset(${list}::jsonb)
                as (kind text, id text, before jsonb, after jsonb, told jsonb, followed boolean))
                with ordinality as list (kind, id, before, after, told, followed, place)),
         head as materialized (
         select timeline, number, at, number - ${followed.length}::int as start
           from advance(${followed.length}::int)),
         audited as (
         insert into audit (number, kind, entity_id, before, after, identity_id, request_id, at)
         select case when followed then start + nth end, kind, id, before, after,
                ${caller.identityId}, ${requestId}, at
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
