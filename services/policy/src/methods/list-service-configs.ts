import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { listServiceConfigs as rowsOf } from '../store/service-config.js'
import { jsonOf } from './encoding.js'
import type { Deps } from './method-deps.js'
import { ensureIdentity } from './service-configs.js'

export const listServiceConfigs =
  ({ changeLog, engine }: Deps): Methods<PolicyServiceService>['listServiceConfigs'] =>
  async ({ identityId }, context) => {
    await ensureIdentity(engine, identityId, context)
    return { json: (await rowsOf(changeLog.db, identityId)).map(jsonOf) }
  }
