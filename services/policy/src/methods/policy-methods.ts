import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { accessMethods } from './access-methods.js'
import { authorize } from './authorize.js'
import { getPolicyAdvice } from './get-policy-advice.js'
import type { MethodDeps } from './method-deps.js'
import { postureMethods } from './posture-methods.js'
import { serviceConfigMethods } from './service-config-methods.js'
import { watchHeaders } from './watch-headers.js'
import { watchRouterModel } from './watch-router-model.js'

/** All methods of the service. */
export const policyMethods = (deps: MethodDeps): Methods<PolicyServiceService> => ({
  ...accessMethods(deps),
  ...postureMethods(deps),
  ...serviceConfigMethods(deps),
  authorize: authorize(deps),
  getPolicyAdvice: getPolicyAdvice(deps),
  watchHeaders: watchHeaders(deps),
  watchRouterModel: watchRouterModel(deps.models),
})
