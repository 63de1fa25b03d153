import { IdentityServiceService } from './gen/overlay/identity/v1/identity.js'
import { PolicyServiceService } from './gen/overlay/policy/v1/policy.js'
import { SessionsServiceService } from './gen/overlay/sessions/v1/sessions.js'

/** Methods whose work is less than the price of a gRPC call of their own: they share one stream per replica. */
export const hotMethods: ReadonlySet<string> = new Set([
  IdentityServiceService.getApiSession.path,
  PolicyServiceService.authorize.path,
  PolicyServiceService.getHeader.path,
  SessionsServiceService.createSession.path,
])
