import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { addAuthenticator } from './add-authenticator.js'
import { enrollByCertificate } from './enroll-by-certificate.js'
import { expectEnrollment } from './expect-enrollment.js'
import { identityStateMethods } from './identity-state-methods.js'
import type { MethodDeps } from './method-deps.js'
import { ownAuthenticatorMethods } from './own-authenticator-methods.js'
import { reEnrollAuthenticator } from './re-enroll-authenticator.js'
import { secondFactorMethods } from './second-factor-methods.js'
import { sessionMethods } from './session-methods.js'

/** All methods of the service. */
export const identityMethods = (deps: MethodDeps): Methods<IdentityServiceService> => ({
  ...deps.jobMethods,
  ...identityStateMethods(deps),
  ...ownAuthenticatorMethods(deps),
  ...secondFactorMethods(deps),
  ...sessionMethods(deps),
  addAuthenticator: addAuthenticator(deps),
  enrollByCertificate: enrollByCertificate(deps),
  expectEnrollment: expectEnrollment(deps),
  reEnrollAuthenticator: reEnrollAuthenticator(deps),
})
