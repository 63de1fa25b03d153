import { type Methods, notFound, type PolicyServiceService } from '@overlay/rpc'
import { momentOf } from '@overlay/store/change-log'
import { lockIdentity } from '../store/lock-identity.js'
import { putServiceConfigs as put } from '../store/service-config.js'
import type { Deps } from './method-deps.js'
import { writeServiceConfigs } from './service-configs.js'

export const putServiceConfigs =
  (deps: Deps): Methods<PolicyServiceService>['putServiceConfigs'] =>
  async (request, context) => {
    const moment = await momentOf(deps.changeLog.db)
    return writeServiceConfigs(deps, async (tx, identityId, configs) => {
      if (!(await lockIdentity(tx, identityId, moment))) throw notFound('identity', identityId)
      return put(tx, identityId, configs)
    })(request, context)
  }
