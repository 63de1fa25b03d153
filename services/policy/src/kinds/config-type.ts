import type { configType } from '@overlay/model'
import type { Seams } from '@overlay/platform/kind-store'
import { Fault, invalid } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { compileSchema } from '../domain/config-schema.js'
import type { Schema } from '../domain/modern-schema.js'

export const configTypeSeams: Seams<typeof configType> = {
  async writing(_tx, { name, schema }) {
    if (name === 'all') throw invalid('name', 'all stands for every config type and names none', name)
    if (schema) checkSchema(schema as Schema)
    return {}
  },

  async deleting(tx, { id }) {
    const { rows } = await tx.query(sql`select from config where config_type_id = ${id} limit 1`)
    // differs: refused as a conflict, not as a server error
    if (rows.length > 0)
      throw new Fault(
        'CAN_NOT_DELETE_REFERENCED_ENTITY',
        `cannot delete config type ${id}, as configs of that type exist`,
      )
  },
}

function checkSchema(schema: Schema): void {
  try {
    compileSchema(schema)
  } catch (err) {
    throw invalid('schema', `invalid schema ${(err as Error).message}`, schema)
  }
  if (schema.type !== 'object')
    throw invalid('schema', 'invalid config type schema, root type must be object', schema)
}
