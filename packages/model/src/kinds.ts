import type { Entity } from './kernel/types.js'
import { apiSession } from './kinds/api-session.js'
import { apiSessionCertificate } from './kinds/api-session-certificate.js'
import { authPolicy } from './kinds/auth-policy.js'
import { authenticator } from './kinds/authenticator.js'
import { ca } from './kinds/ca.js'
import { config } from './kinds/config.js'
import { configType } from './kinds/config-type.js'
import { controller } from './kinds/controller.js'
import { edgeRouter } from './kinds/edge-router.js'
import { edgeRouterPolicy } from './kinds/edge-router-policy.js'
import { enrollment } from './kinds/enrollment.js'
import { externalJwtSigner } from './kinds/external-jwt-signer.js'
import { identity } from './kinds/identity.js'
import { identityType } from './kinds/identity-type.js'
import { postureCheck } from './kinds/posture-check.js'
import { postureCheckType } from './kinds/posture-check-type.js'
import { service } from './kinds/service.js'
import { serviceEdgeRouterPolicy } from './kinds/service-edge-router-policy.js'
import { servicePolicy } from './kinds/service-policy.js'
import { session } from './kinds/session.js'
import { terminator } from './kinds/terminator.js'
import { transitRouter } from './kinds/transit-router.js'

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
