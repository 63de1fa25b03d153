import { config, configType, memoized } from '@overlay/model'
import { Fault, invalid } from '@overlay/rpc'
import { kind } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import { type Check, compileSchema } from '../domain/config-schema.js'
import type { Schema } from '../domain/modern-schema.js'
import { dropConfigs } from '../store/config.js'
import { userOfConfig } from '../store/service-config.js'

export const configs = kind(config, {
  // the type is locked already where it is named, and cannot be deleted while configs of it exist
  async writing(_tx, { configTypeId, data }, _before, { named }) {
    if (configTypeId === '') throw invalid('type', 'config type must be specified', configTypeId)
    const type = (await named(configType, [configTypeId])).get(configTypeId)
    if (!type) throw invalid('type', 'invalid config type', configTypeId)
    const misfit = type.schema && compileStored(type.schema as Schema)(data)
    if (misfit) throw invalid(misfit.field, misfit.reason, misfit.value)
    return {}
  },

  isUsed: sql`config_is_used(id)`,

  async deleting(tx, { id }, { also }) {
    const user = await userOfConfig(tx, id)
    // differs: refused as a conflict, not as a server error
    if (user)
      throw new Fault(
        'CAN_NOT_DELETE_REFERENCED_ENTITY',
        `config is in use by identity ${user.identityId} for service ${user.serviceId}`,
      )
    for (const change of await dropConfigs(tx, [id])) also(change)
  },
})

/** A type may have been stored by a release whose schemas had no limits. By the object: rows in memory keep theirs. */
const compileStored = memoized((schema: Schema): Check => {
  try {
    return compileSchema(schema)
  } catch (err) {
    throw invalid('type', `the schema of the config type cannot be used: it ${(err as Error).message}`, '')
  }
})
