import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { authorize } from './authorize.js'
import { findLost } from './find-lost.js'
import { findRequiring } from './find-requiring.js'
import { getCommonRouters } from './get-common-routers.js'
import { getHeader } from './get-header.js'
import { getIdentityRouters } from './get-identity-routers.js'
import { getPolicyAdvice } from './get-policy-advice.js'
import { getPostureData } from './get-posture-data.js'
import { listFailedRequests } from './list-failed-requests.js'
import { listServiceConfigs } from './list-service-configs.js'
import type { Deps } from './method-deps.js'
import { putServiceConfigs } from './put-service-configs.js'
import { removeServiceConfigs } from './remove-service-configs.js'
import { submitPosture } from './submit-posture.js'
import { watchHeaders } from './watch-headers.js'

/** All methods of the service. */
export const policyMethods = (deps: Deps): Methods<PolicyServiceService> => ({
  authorize: authorize(deps),
  findLost: findLost(deps),
  findRequiring: findRequiring(deps),
  getCommonRouters: getCommonRouters(deps),
  getHeader: getHeader(deps),
  getIdentityRouters: getIdentityRouters(deps),
  getPolicyAdvice: getPolicyAdvice(deps),
  getPostureData: getPostureData(deps),
  listFailedRequests: listFailedRequests(deps),
  listServiceConfigs: listServiceConfigs(deps),
  putServiceConfigs: putServiceConfigs(deps),
  removeServiceConfigs: removeServiceConfigs(deps),
  submitPosture: submitPosture(deps),
  watchHeaders: watchHeaders(deps),
})
