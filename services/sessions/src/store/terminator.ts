import { terminator } from '@overlay/model'
import type { RowChange } from '@overlay/store/change-log'
import { deleteRows } from '@overlay/store/kind-store'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'

/** Deletes terminators and returns their changes. */
export const endTerminators = (tx: Tx, which: Sql): Promise<RowChange[]> => deleteRows(tx, terminator, which)

/** Services of terminators that are missing from the copy of service names. */
export async function uncopiedServices(db: Db): Promise<readonly string[]> {
  const { rows } = await db.query<{ id: string }>(sql`
    select distinct service_id as id from terminator
     where not exists (select from known_service where known_service.id = service_id)`)
  return rows.map(({ id }) => id)
}
