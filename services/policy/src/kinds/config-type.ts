import { configType } from '@overlay/model'
import { Fault, invalid } from '@overlay/rpc'
import type { WaitForFollowers } from '@overlay/store/change-log'
import { type Kind, kind } from '@overlay/store/kind-store'
import { compileSchema } from '../domain/config-schema.js'
import type { Schema } from '../domain/modern-schema.js'
import { hasConfigs } from '../store/config.js'

export const configTypes = (waitForFollowers: WaitForFollowers): Kind =>
  kind(
    configType,
    {
      async writing(_tx, { name, schema }) {
        if (name === 'all') throw invalid('name', 'all stands for every config type and names none', name)
        if (!schema) return {}
        if (Object.keys(schema).length === 0) return { schema: null } // wire: an empty schema is stored as null
        checkSchema(schema as Schema)
        return {}
      },

      async deleting(tx, { id }) {
        // differs: refused as a conflict, not as a server error
        if (await hasConfigs(tx, id))
          throw new Fault(
            'CAN_NOT_DELETE_REFERENCED_ENTITY',
            `cannot delete config type ${id}, as configs of that type exist`,
          )
      },
    },
    {
      operations: (uniform) => ({
        // identity removes the type from API sessions
        delete: async (request, context) =>
          waitForFollowers(await uniform.delete(request, context), context, ['identity']),
      }),
    },
  )

function checkSchema(schema: Schema): void {
  try {
    compileSchema(schema)
  } catch (err) {
    throw invalid('schema', `invalid schema ${(err as Error).message}`, schema)
  }
  if (schema.type !== 'object')
    throw invalid('schema', 'invalid config type schema, root type must be object', schema)
}
