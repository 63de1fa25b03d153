import { type Entity, identity } from '@overlay/model'
import type { RowChange } from '@overlay/platform/change-log'
import { columnsOf, plainOf, rowOf, tableOf } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import sql, { type Sql } from 'sql-template-tag'

/** Changes a row beside the uniform way, and tells it as the uniform way does. Nothing when it does not exist. */
export async function changeRow(
  tx: Tx,
  entity: Entity,
  which: Sql,
  sets: Sql,
  more: object = {},
): Promise<RowChange | undefined> {
  const before = await tx.query<{ id: string }>(
    sql`select ${columnsOf(entity)} from ${tableOf(entity)} where ${which} for update`,
  )
  const [row] = before.rows
  if (!row) return undefined
  const after = await tx.query(sql`
    update ${tableOf(entity)} set ${sets}, updated_at = clock_timestamp() where id = ${row.id}
 returning ${columnsOf(entity)}`)
  if (!after.rows[0]) return undefined
  const plain = plainOf(entity, rowOf(entity, after.rows[0]))
  return {
    kind: entity.kind,
    id: row.id,
    before: plainOf(entity, rowOf(entity, row)),
    after: plain,
    payload: { ...plain, ...more },
  }
}

export const changeIdentity = (
  tx: Tx,
  id: string,
  sets: Sql,
  more?: object,
): Promise<RowChange | undefined> => changeRow(tx, identity, sql`id = ${id}`, sets, more)
