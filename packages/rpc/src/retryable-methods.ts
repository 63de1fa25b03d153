import type { MethodDefinition } from '@grpc/grpc-js'
import { ChangeServiceService } from './gen/overlay/change/v1/change.js'
import { EntityServiceService } from './gen/overlay/entity/v1/entity.js'
import { IdentityServiceService } from './gen/overlay/identity/v1/identity.js'
import { OidcServiceService } from './gen/overlay/oidc/v1/oidc.js'
import { PkiServiceService } from './gen/overlay/pki/v1/pki.js'
import { PolicyServiceService } from './gen/overlay/policy/v1/policy.js'
import { SessionsServiceService } from './gen/overlay/sessions/v1/sessions.js'

const { pull, reach, head } = ChangeServiceService
const { list, get, select, view, count, listAttributes } = EntityServiceService
const {
  getApiSession,
  getBearerSession,
  checkApiSession,
  markActivity,
  listOwnAuthenticators,
  getOwnAuthenticator,
  getMfa,
} = IdentityServiceService
const { openRouterSession, reserveRouterName, releaseRouterName } = IdentityServiceService
const {
  getServerCertificate,
  getTrustBundle,
  getTokenKeys,
  signTokens,
  checkEnrollment,
  getCaJwt,
  answerChallenge,
} = PkiServiceService
const { getLogin, revokeToken, endSession } = OidcServiceService
const policy = PolicyServiceService
const sessions = SessionsServiceService

const methods: readonly Pick<MethodDefinition<unknown, unknown>, 'path'>[] = [
  ...[pull, reach, head],
  ...[list, get, select, view, count, listAttributes],
  ...[
    getApiSession,
    getBearerSession,
    checkApiSession,
    markActivity,
    listOwnAuthenticators,
    getOwnAuthenticator,
    getMfa,
  ],
  openRouterSession, // finds the one that was opened before
  ...[reserveRouterName, releaseRouterName],
  ...[getLogin, revokeToken, endSession],
  ...[
    getServerCertificate,
    getTrustBundle,
    getTokenKeys,
    signTokens,
    checkEnrollment,
    getCaJwt,
    answerChallenge,
  ],
  ...[policy.authorize, policy.getHeader, policy.getCommonRouters, policy.findLost, policy.findRequiring],
  ...[policy.getPolicyAdvice, policy.listServiceConfigs, policy.getPostureData, policy.listFailedRequests],
  // a repeated create of a session finds the first one
  ...[sessions.createSession, sessions.describeRouters, sessions.getRoutePath, sessions.inspect],
]

/** Methods that may be executed twice: reads, and writes whose repetition changes nothing. */
export const retryableMethods: ReadonlySet<string> = new Set(methods.map(({ path }) => path))
