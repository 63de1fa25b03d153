import { apiSession } from './entities/api-session.js'
import { apiSessionCertificate } from './entities/api-session-certificate.js'
import { authPolicy } from './entities/auth-policy.js'
import { authenticator } from './entities/authenticator.js'
import { ca } from './entities/ca.js'
import { config } from './entities/config.js'
import { configType } from './entities/config-type.js'
import { controller } from './entities/controller.js'
import { edgeRouter } from './entities/edge-router.js'
import { edgeRouterPolicy } from './entities/edge-router-policy.js'
import { enrollment } from './entities/enrollment.js'
import { externalJwtSigner } from './entities/external-jwt-signer.js'
import { identity } from './entities/identity.js'
import { identityType } from './entities/identity-type.js'
import { postureCheck } from './entities/posture-check.js'
import { postureCheckType } from './entities/posture-check-type.js'
import { service } from './entities/service.js'
import { serviceEdgeRouterPolicy } from './entities/service-edge-router-policy.js'
import { servicePolicy } from './entities/service-policy.js'
import { session } from './entities/session.js'
import { terminator } from './entities/terminator.js'
import { transitRouter } from './entities/transit-router.js'
import type { Entity } from './kernel/types.js'

const all: readonly Entity[] = [
  apiSession,
  apiSessionCertificate,
  authenticator,
  authPolicy,
  ca,
  config,
  configType,
  controller,
  edgeRouter,
  edgeRouterPolicy,
  enrollment,
  externalJwtSigner,
  identity,
  identityType,
  postureCheck,
  postureCheckType,
  service,
  serviceEdgeRouterPolicy,
  servicePolicy,
  session,
  terminator,
  transitRouter,
]

/** Every kind, by the path segment of its collection. */
export const kinds: ReadonlyMap<string, Entity> = new Map(all.map((entity) => [entity.kind, entity]))
