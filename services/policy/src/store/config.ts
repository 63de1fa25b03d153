import { service } from '@overlay/model'
import type { RowChange } from '@overlay/platform/change-log'
import { changeOf, columnsOf, rowOf } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import sql from 'sql-template-tag'
import type { Schema } from '../domain/modern-schema.js'

/** The schema of a config type; null: the type has none; undefined: there is no such type. */
export async function schemaOfType(tx: Tx, typeId: string): Promise<Schema | null | undefined> {
  const { rows } = await tx.query<{ schema: Schema | null }>(
    sql`select schema from config_type where id = ${typeId}`,
  )
  return rows[0]?.schema
}

export async function hasConfigs(tx: Tx, typeId: string): Promise<boolean> {
  const { rows } = await tx.query(sql`select 1 from config where config_type_id = ${typeId} limit 1`)
  return rows.length > 0
}

export interface TypedConfig {
  readonly id: string
  readonly name: string
  readonly typeId: string
  readonly type: string
}

/** Configs with their types, in the order of their ids. */
export async function typedConfigs(tx: Tx, ids: readonly string[]): Promise<readonly TypedConfig[]> {
  if (ids.length === 0) return []
  const { rows } = await tx.query<TypedConfig & Record<string, unknown>>(sql`
    select c.id, c.name, t.id as "typeId", t.name as type
      from config c join config_type t on t.id = c.config_type_id
     where c.id = any(${ids}) order by c.id`)
  return rows
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
