import { AuditServiceService } from './gen/overlay/audit/v1/audit.js'
import { ChangeServiceService } from './gen/overlay/change/v1/change.js'
import { EntityServiceService } from './gen/overlay/entity/v1/entity.js'
import { PkiServiceService } from './gen/overlay/pki/v1/pki.js'
import { PolicyServiceService } from './gen/overlay/policy/v1/policy.js'
import { SessionsServiceService } from './gen/overlay/sessions/v1/sessions.js'

/**
 * Methods with large answers, which would delay the others, or that are called before their service has started. They
 * have a connection of frames of their own per replica, or are separate gRPC calls at a replica without frames. All
 * others share one connection per replica.
 */
export const unaryMethods: ReadonlySet<string> = new Set([
  AuditServiceService.list.path,
  AuditServiceService.get.path,
  ChangeServiceService.pull.path,
  EntityServiceService.list.path,
  EntityServiceService.listAttributes.path,
  EntityServiceService.select.path,
  PkiServiceService.getServerCertificate.path,
  PkiServiceService.getTrustBundle.path,
  PolicyServiceService.findLost.path,
  PolicyServiceService.getIdentityRouters.path,
  PolicyServiceService.getPolicyAdvice.path,
  PolicyServiceService.listServiceConfigs.path,
  SessionsServiceService.inspect.path,
])
