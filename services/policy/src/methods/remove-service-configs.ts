import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { removeServiceConfigs as remove } from '../store/service-config.js'
import type { Deps } from './method-deps.js'
import { writeServiceConfigs } from './service-configs.js'

export const removeServiceConfigs = (deps: Deps): Methods<PolicyServiceService>['removeServiceConfigs'] =>
  writeServiceConfigs(deps, remove)
