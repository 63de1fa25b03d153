import { identity } from '@overlay/model'
import { columnsOf, plainOf, type RowChange, rowOf, type Tx } from '@overlay/platform'
import sql, { type Sql } from 'sql-template-tag'

/** Changes an identity beside the uniform way, and tells it as the uniform way does. Nothing when it does not exist. */
export async function changeIdentity(
  tx: Tx,
  id: string,
  sets: Sql,
  more: object = {},
): Promise<RowChange | undefined> {
  const before = await tx.query(sql`select ${columnsOf(identity)} from identity where id = ${id} for update`)
  if (!before.rows[0]) return undefined
  const after = await tx.query(sql`
    update identity set ${sets}, updated_at = clock_timestamp() where id = ${id} returning ${columnsOf(identity)}`)
  if (!after.rows[0]) return undefined
  const plain = plainOf(identity, rowOf(identity, after.rows[0]))
  return {
    kind: identity.kind,
    id,
    before: plainOf(identity, rowOf(identity, before.rows[0])),
    after: plain,
    told: { ...plain, ...more },
  }
}
