import { identity, referenceTo } from '@overlay/model'
import type { RowChange } from '@overlay/store/change-log'
import { changeRow } from '@overlay/store/kind-store'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'

interface ReferenceRow {
  readonly [member: string]: string
  readonly id: string
  readonly name: string
  readonly authPolicyId: string
}

/** References to identities as answers show them, with a link to the auth policy. */
export async function identityReferences(
  db: Db,
  ids: readonly string[],
): Promise<(id: string) => ReturnType<typeof referenceTo>> {
  const { rows } = await db.query<ReferenceRow>(sql`
    select id, name, auth_policy_id as "authPolicyId" from identity where id = any(${ids})`)
  const byId = new Map(rows.map((row) => [row.id, row]))
  return (id) => {
    const row = byId.get(id)
    return referenceTo(identity, id, row?.name, row)
  }
}

/** `extra`: for followers, beside the row. */
export const changeIdentity = (
  tx: Tx,
  id: string,
  sets: Sql,
  extra?: object,
): Promise<RowChange | undefined> => changeRow(tx, identity, sql`id = ${id}`, sets, extra)

/** Records a change of the identity whose columns stay: what it shows has changed, or followers get `extra`. */
export const touchIdentity = (tx: Tx, id: string, extra?: object): Promise<RowChange | undefined> =>
  changeIdentity(tx, id, sql`name = name`, extra)

/** Keeps the identity from being deleted. Taken before all other locks, in the order of a delete. */
export const shareIdentity = (tx: Tx, id: string) =>
  tx.query(sql`select from identity where id = ${id} for key share`)
