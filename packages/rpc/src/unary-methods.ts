import { ChangeServiceService } from './gen/overlay/change/v1/change.js'
import { EntityServiceService } from './gen/overlay/entity/v1/entity.js'
import { PkiServiceService } from './gen/overlay/pki/v1/pki.js'
import { PolicyServiceService } from './gen/overlay/policy/v1/policy.js'
import { SessionsServiceService } from './gen/overlay/sessions/v1/sessions.js'

/**
 * Methods that are separate gRPC calls. All others share one stream per replica at a quarter of the cost. These have
 * large answers, which would delay the others, or are called before their service has started.
 */
export const unaryMethods: ReadonlySet<string> = new Set([
  ChangeServiceService.pull.path,
  EntityServiceService.list.path,
  EntityServiceService.listAttributes.path,
  EntityServiceService.select.path,
  PkiServiceService.getServerCertificate.path,
  PkiServiceService.getTrustBundle.path,
  PolicyServiceService.findLost.path,
  PolicyServiceService.getPolicyAdvice.path,
  PolicyServiceService.listServiceConfigs.path,
  SessionsServiceService.inspect.path,
])
