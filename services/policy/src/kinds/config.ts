import { type config, service } from '@overlay/model'
import { changeOf, columnsOf, type Deleting, rowOf, type Seams } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import { Fault, invalid } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { type Check, compileSchema } from '../domain/config-schema.js'
import type { Schema } from '../domain/modern-schema.js'

export const configSeams: Seams<typeof config> = {
  // the type is locked already where it is named, and cannot be deleted where it has been
  async writing(tx, { configTypeId, data }) {
    if (configTypeId === '') throw invalid('type', 'config type must be specified', configTypeId)
    const { rows } = await tx.query<{ schema: Schema | null }>(
      sql`select schema from config_type where id = ${configTypeId}`,
    )
    const [type] = rows
    if (!type) throw invalid('type', 'invalid config type', configTypeId)
    const misfit = type.schema && checkOf(type.schema)(data)
    if (misfit) throw invalid(misfit.field, misfit.reason, misfit.value)
    return {}
  },

  async deleting(tx, { id }, deleting) {
    const { rows } = await tx.query<{ identity_id: string; service_id: string }>(
      sql`select identity_id, service_id from service_config where config_id = ${id} limit 1`,
    )
    const [user] = rows
    // differs: refused as a conflict, not as a server error
    if (user)
      throw new Fault(
        'CAN_NOT_DELETE_REFERENCED_ENTITY',
        `config is in use by identity ${user.identity_id} for service ${user.service_id}`,
      )
    await takeFromServices(tx, id, deleting)
  },
}

/** A type may have been stored when its schema had no limits. */
function checkOf(schema: Schema): Check {
  try {
    return compileSchema(schema)
  } catch (err) {
    throw invalid('type', `the schema of the config type cannot be used: it ${(err as Error).message}`, '')
  }
}

/** wire: this is no update of the services, their time of it stays. */
export async function takeFromServices(tx: Tx, id: string, { also }: Deleting): Promise<void> {
  const users = sql`configs @> array[${id}]`
  const before = await tx.query(
    sql`select ${columnsOf(service)} from service where ${users} order by id for update`,
  )
  for (const row of before.rows) {
    const configs = (row.configs as string[]).filter((config) => config !== id)
    await tx.query(sql`update service set configs = ${configs} where id = ${row.id}`)
    also(changeOf(service, row.id, rowOf(service, row), rowOf(service, { ...row, configs })))
  }
}
