import { service } from '@overlay/model'
import type { RowChange } from '@overlay/store/change-log'
import { changeOf, columnsOf, rowOf } from '@overlay/store/kind-store'
import type { Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'

export async function hasConfigs(tx: Tx, typeId: string): Promise<boolean> {
  const { rows } = await tx.query(sql`select 1 from config where config_type_id = ${typeId} limit 1`)
  return rows.length > 0
}

/**
 * Removes deleted configs from the services that name them. wire: this is no update of the services, their `updatedAt`
 * stays.
 */
export async function dropConfigs(tx: Tx, ids: readonly string[]): Promise<RowChange[]> {
  const changes: RowChange[] = []
  for (const id of ids) {
    const { rows } = await tx.query(sql`
      select ${columnsOf(service)} from service where configs @> array[${id}] order by id for update`)
    for (const row of rows) {
      const configs = (row.configs as string[]).filter((config) => config !== id)
      await tx.query(sql`update service set configs = ${configs} where id = ${row.id}`)
      changes.push(changeOf(service, row.id, rowOf(service, row), rowOf(service, { ...row, configs })))
    }
  }
  return changes
}
