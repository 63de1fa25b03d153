import { config, configType } from '@overlay/model'
import { Fault, invalid } from '@overlay/rpc'
import { kind } from '@overlay/store/kind-store'
import { LRUCache } from 'lru-cache'
import { type Check, compileSchema } from '../domain/config-schema.js'
import type { Schema } from '../domain/modern-schema.js'
import { dropConfigs } from '../store/config.js'
import { userOfConfig } from '../store/service-config.js'

export const configs = kind(config, {
  // the type is locked already where it is named, and cannot be deleted while configs of it exist
  async writing(_tx, { configTypeId, data }, _before, { named }) {
    if (configTypeId === '') throw invalid('type', 'config type must be specified', configTypeId)
    const type = named(configType, configTypeId)
    if (!type) throw invalid('type', 'invalid config type', configTypeId)
    const misfit = type.schema && compileStored(type.schema as Schema)(data)
    if (misfit) throw invalid(misfit.field, misfit.reason, misfit.value)
    return {}
  },

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

/** By their schemas. Compiling takes milliseconds, and configs of one type are written by the thousand. */
const compiled = new LRUCache<string, Check>({ max: 100 })

function compileStored(schema: Schema): Check {
  const text = JSON.stringify(schema)
  const known = compiled.get(text)
  if (known) return known
  try {
    const check = compileSchema(schema)
    compiled.set(text, check)
    return check
  } catch (err) {
    // a release whose schemas had no limits may have stored it
    throw invalid('type', `the schema of the config type cannot be used: it ${(err as Error).message}`, '')
  }
}
