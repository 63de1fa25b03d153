import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { enrollmentMethods } from './enrollment-methods.js'
import { identityStateMethods } from './identity-state-methods.js'
import type { MethodDeps } from './method-deps.js'
import { ownAuthenticatorMethods } from './own-authenticator-methods.js'
import { secondFactorMethods } from './second-factor-methods.js'
import { sessionMethods } from './session-methods.js'

/** All methods of the service. */
export const identityMethods = (deps: MethodDeps): Methods<IdentityServiceService> => ({
  ...deps.jobMethods,
  ...enrollmentMethods(deps),
  ...identityStateMethods(deps),
  ...ownAuthenticatorMethods(deps),
  ...secondFactorMethods(deps),
  ...sessionMethods(deps),
})
