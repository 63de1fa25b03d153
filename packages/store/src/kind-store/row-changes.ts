import type { BaseRow, Entity } from '@overlay/model'
import type { QueryResultRow } from 'pg'
import sql, { empty, type Sql } from 'sql-template-tag'
import type { RowChange } from '../change-log/change-log.js'
import { onlyRow, type Tx } from '../postgres/database.js'
import {
  type AnyRow,
  type AnyValues,
  columnsOf,
  columnValues,
  insertListSql,
  plainOf,
  rowOf,
  tableOf,
} from './row.js'

/** What a change of a row leaves in the audit and, where the kind is followed, in the change log. */
export function changeOf(entity: Entity, id: string, before: AnyRow | null, after: AnyRow | null): RowChange {
  const payload = after && plainOf(entity, after)
  return {
    kind: entity.kind,
    id,
    before: before && plainOf(entity, before),
    after: payload,
    ...(entity.followed && { payload }),
  }
}

export async function insertRow(
  tx: Tx,
  entity: Entity,
  id: string,
  values: AnyValues,
  tags: BaseRow['tags'],
): Promise<RowChange> {
  const list = JSON.stringify([columnValues(entity, id, values, tags)])
  const [change] = await insertRows(tx, entity, insertListSql(entity, list, empty))
  return change as RowChange
}

/** Runs an insert that has no `returning`. `name`: of the prepared statement. */
export async function insertRows(tx: Tx, entity: Entity, insert: Sql, name?: string): Promise<RowChange[]> {
  const { rows } = await tx.query(sql`${insert} returning ${columnsOf(entity)}`, name)
  return rowsOf(entity, rows).map((row) => changeOf(entity, row.id, null, row))
}

/** Changes one row outside the uniform operations. `extra`: for followers alone. Undefined: there is no such row. */
export async function changeRow(
  tx: Tx,
  entity: Entity,
  which: Sql,
  sets: Sql,
  extra: object = {},
): Promise<RowChange | undefined> {
  const [before] = rowsOf(
    entity,
    (await tx.query(sql`select ${columnsOf(entity)} from ${tableOf(entity)} where ${which} for update`)).rows,
  )
  if (!before) return undefined
  const { rows } = await tx.query(sql`
    update ${tableOf(entity)} set ${sets}, updated_at = clock_timestamp() where id = ${before.id}
 returning ${columnsOf(entity)}`)
  const change = changeOf(entity, before.id, before, rowOf(entity, onlyRow(rows)))
  return entity.followed ? { ...change, payload: { ...change.payload, ...extra } } : change
}

/** Deletes rows outside the uniform operations. */
export async function deleteRows(tx: Tx, entity: Entity, which: Sql): Promise<RowChange[]> {
  const { rows } = await tx.query(
    sql`delete from ${tableOf(entity)} where ${which} returning ${columnsOf(entity)}`,
  )
  return rowsOf(entity, rows).map((row) => changeOf(entity, row.id, row, null))
}

const rowsOf = (entity: Entity, rows: readonly QueryResultRow[]): AnyRow[] =>
  rows.map((row) => rowOf(entity, row))
