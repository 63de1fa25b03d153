import type { MethodDefinition } from '@grpc/grpc-js'
import { AuditServiceService } from './gen/overlay/audit/v1/audit.js'
import { ChangeServiceService } from './gen/overlay/change/v1/change.js'
import { EntityServiceService } from './gen/overlay/entity/v1/entity.js'
import { IdentityServiceService } from './gen/overlay/identity/v1/identity.js'
import { OidcServiceService } from './gen/overlay/oidc/v1/oidc.js'
import { PkiServiceService } from './gen/overlay/pki/v1/pki.js'
import { PolicyServiceService } from './gen/overlay/policy/v1/policy.js'
import { SessionsServiceService } from './gen/overlay/sessions/v1/sessions.js'

const audit = AuditServiceService
const changes = ChangeServiceService
const entities = EntityServiceService
const identity = IdentityServiceService
const oidc = OidcServiceService
const pki = PkiServiceService
const policy = PolicyServiceService
const sessions = SessionsServiceService

const methods: readonly Pick<MethodDefinition<unknown, unknown>, 'path'>[] = [
  ...[audit.list, audit.get],
  ...[changes.pull, changes.reach, changes.head],
  ...[entities.list, entities.get, entities.select, entities.view, entities.count, entities.listAttributes],
  ...[identity.getApiSession, identity.getBearerSession, identity.checkApiSession, identity.markActivity],
  ...[identity.listOwnAuthenticators, identity.getOwnAuthenticator, identity.getMfa],
  ...[identity.expectEnrollment, identity.reportConnections],
  identity.openRouterSession, // finds the one that was opened before
  ...[identity.reserveRouterName, identity.releaseRouterName],
  ...[oidc.getLogin, oidc.revokeToken, oidc.endSession],
  ...[pki.getServerCertificate, pki.getTrustBundle, pki.getTokenKeys, pki.signTokens, pki.checkEnrollment],
  ...[pki.getCaJwt, pki.answerChallenge],
  ...[policy.authorize, policy.getHeader, policy.getCommonRouters, policy.getIdentityRouters],
  ...[policy.findLost, policy.findRequiring],
  ...[policy.getPolicyAdvice, policy.listServiceConfigs, policy.getPostureData, policy.listFailedRequests],
  // a repeated create of a session finds the first one
  ...[sessions.createSession, sessions.describeRouters, sessions.getRoutePath, sessions.inspect],
  sessions.claimRouterHosts,
]

/** Methods that may be executed twice: reads, and writes whose repetition changes nothing. */
export const retryableMethods: ReadonlySet<string> = new Set(methods.map(({ path }) => path))
