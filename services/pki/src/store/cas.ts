import { ca, type RowOf } from '@overlay/model'
import type { RowChange } from '@overlay/store/change-log'
import { type AnyRow, changeOf, columnsOf, rowOf } from '@overlay/store/kind-store'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'

export type Ca = RowOf<typeof ca>

async function findWhere(db: Db, which: Sql): Promise<readonly Ca[]> {
  const { rows } = await db.query(sql`select ${columnsOf(ca)} from ca where ${which}`)
  return rows.map((row) => rowOf(ca, row) as unknown as Ca)
}

export const findCa = async (db: Db, id: string): Promise<Ca | undefined> =>
  (await findWhere(db, sql`id = ${id}`))[0]

export const lockCa = async (tx: Tx, id: string): Promise<Ca | undefined> =>
  (await findWhere(tx, sql`id = ${id} for update`))[0]

export const findCas = (db: Db, ids: readonly string[]): Promise<readonly Ca[]> =>
  ids.length === 0 ? Promise.resolve([]) : findWhere(db, sql`id = any(${ids})`)

export const findCaByFingerprint = async (db: Db, fingerprint: string): Promise<Ca | undefined> =>
  (await findWhere(db, sql`fingerprint = ${fingerprint}`))[0]

/** Certificates of the authority are accepted from here on, as far as its settings allow. */
export async function markVerified(tx: Tx, before: Ca): Promise<readonly RowChange[]> {
  const { rows } = await tx.query(sql`
    update ca set is_verified = true, updated_at = clock_timestamp() where id = ${before.id}
 returning ${columnsOf(ca)}`)
  return rows.map((row) => changeOf(ca, before.id, before as unknown as AnyRow, rowOf(ca, row)))
}
