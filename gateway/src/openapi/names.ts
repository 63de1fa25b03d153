import type { Api } from '../http/paths.js'

// wire: clients are generated from the published documents: names are the same here.

/** The name of a definition: the title of its schema, unless it is irregular. */
export const definitionNameOf = (api: Api, title: string): string => definitionNames[api][title] ?? title

const irregularNames = {
  controllerList: 'controllersList',
  detailEdgeRouterEnvelope: 'detailedEdgeRouterEnvelope',
  detailServiceEdgeRouterPolicyEnvelope: 'detailServiceEdgePolicyEnvelope',
  detailServicePolicyEnvelope: 'detailServicePolicyEnvelop',
  listPostureChecksEnvelope: 'listPostureCheckEnvelope',
}
const definitionNames: Readonly<Record<Api, Readonly<Record<string, string>>>> = {
  client: irregularNames,
  management: {
    ...irregularNames,
    detailSessionEnvelope: 'detailSessionManagementEnvelope',
    listSessionsEnvelope: 'listSessionsManagementEnvelope',
    sessionDetail: 'sessionManagementDetail',
    sessionList: 'sessionManagementList',
  },
  fabric: irregularNames,
  audit: {},
}

const verbs: Readonly<Record<string, string>> = { PUT: 'update', PATCH: 'patch', DELETE: 'delete' }

/** The name of an operation in generated clients. */
export function operationIdOf(operation: string): string {
  const name = irregular[operation]
  if (name) return name
  const [method = '', path = ''] = operation.split(' ')
  const [kind = '', id, rest] = path.split('/').slice(1)
  const one = singular(pascal(kind))
  if (id === undefined) return method === 'POST' ? `create${one}` : `list${pascal(kind)}`
  if (rest === undefined) return `${verbs[method] ?? 'detail'}${one}`
  return method === 'POST' ? `${camel(rest)}${one}` : `list${one}${pascal(rest)}`
}

const irregular: Readonly<Record<string, string>> = {
  'GET /': 'listRoot',
  'GET /.well-known/est/cacerts': 'listWellKnownCas',
  'GET /api-sessions': 'listAPISessions',
  'DELETE /api-sessions/{id}': 'deleteAPISessions',
  'GET /api-sessions/{id}': 'detailAPISessions',
  'POST /authenticate': 'authenticate',
  'POST /authenticate/mfa': 'authenticateMfa',
  'GET /cas/{id}/jwt': 'getCaJwt',
  'GET /export': 'exportChanges',
  'GET /config-types/{id}/configs': 'listConfigsForConfigType',
  'DELETE /current-api-session': 'deleteCurrentApiSession',
  'GET /current-api-session': 'getCurrentAPISession',
  'POST /current-api-session/certificates': 'createCurrentApiSessionCertificate',
  'GET /current-api-session/certificates': 'listCurrentApiSessionCertificates',
  'DELETE /current-api-session/certificates/{id}': 'deleteCurrentApiSessionCertificate',
  'GET /current-api-session/certificates/{id}': 'detailCurrentApiSessionCertificate',
  'GET /current-api-session/service-updates': 'listServiceUpdates',
  'GET /current-identity': 'getCurrentIdentity',
  'GET /current-identity/authenticators': 'listCurrentIdentityAuthenticators',
  'GET /current-identity/authenticators/{id}': 'detailCurrentIdentityAuthenticator',
  'PATCH /current-identity/authenticators/{id}': 'patchCurrentIdentityAuthenticator',
  'PUT /current-identity/authenticators/{id}': 'updateCurrentIdentityAuthenticator',
  'POST /current-identity/authenticators/{id}/extend': 'extendCurrentIdentityAuthenticator',
  'POST /current-identity/authenticators/{id}/extend-verify': 'extendVerifyCurrentIdentityAuthenticator',
  'GET /current-identity/edge-routers': 'getCurrentIdentityEdgeRouters',
  'DELETE /current-identity/mfa': 'deleteMfa',
  'GET /current-identity/mfa': 'detailMfa',
  'POST /current-identity/mfa': 'enrollMfa',
  'GET /current-identity/mfa/qr-code': 'detailMfaQrCode',
  'POST /current-identity/mfa/recovery-codes': 'createMfaRecoveryCodes',
  'GET /current-identity/mfa/recovery-codes': 'detailMfaRecoveryCodes',
  'POST /current-identity/mfa/verify': 'verifyMfa',
  'POST /database/check-data-integrity': 'checkDataIntegrity',
  'GET /database/data-integrity-results': 'dataIntegrityResults',
  'POST /database/fix-data-integrity': 'fixDataIntegrity',
  'POST /database/snapshot': 'createDatabaseSnapshot',
  'POST /raft/add-member': 'raftMemberAdd',
  'GET /raft/list-members': 'raftListMembers',
  'POST /raft/remove-member': 'raftMemberRemove',
  'POST /raft/transfer-leadership': 'raftTransferLeadership',
  'POST /enroll': 'enroll',
  'POST /enroll/ca': 'enrollCa',
  'POST /enroll/challenge': 'enrollmentChallenge',
  'POST /enroll/erott': 'enrollErOtt',
  'POST /enroll/extend/router': 'extendRouterEnrollment',
  'GET /enroll/jwks': 'getEnrollmentJwks',
  'POST /enroll/ott': 'enrollOtt',
  'POST /enroll/ottca': 'enrollOttCa',
  'POST /enroll/trott': 'enrollTrOtt',
  'POST /enroll/updb': 'enrollUpdb',
  'GET /identities/{id}/authenticators': 'getIdentityAuthenticators',
  'GET /identities/{id}/edge-router-policies': 'listIdentitysEdgeRouterPolicies',
  'GET /identities/{id}/enrollments': 'getIdentityEnrollments',
  'GET /identities/{id}/failed-service-requests': 'getIdentityFailedServiceRequests',
  'DELETE /identities/{id}/mfa': 'removeIdentityMfa',
  'GET /identities/{id}/policy-advice/{serviceId}': 'getIdentityPolicyAdvice',
  'GET /identities/{id}/posture-data': 'getIdentityPostureData',
  'POST /identities/{id}/service-configs': 'associateIdentitysServiceConfigs',
  'DELETE /identities/{id}/service-configs': 'disassociateIdentitysServiceConfigs',
  'GET /identities/{id}/service-configs': 'listIdentitysServiceConfigs',
  'PUT /identities/{id}/trace': 'updateIdentityTracing',
  'GET /services/{id}/configs': 'listServiceConfig',
  'GET /sessions/{id}/route-path': 'detailSessionRoutePath',
  'GET /specs/{id}/spec': 'detailSpecBody',
}

/** Names of the envelopes of a page and of one entity, after their contents. */
export const pageNameOf = (base: string): string => `list${plural(capital(base))}Envelope`
export const detailNameOf = (base: string): string =>
  base.startsWith('detail') ? `${base}Envelope` : `detail${capital(base)}Envelope`

const pascal = (words: string): string => words.split('-').map(capital).join('')
const camel = (words: string): string => words.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)
const singular = (plural: string): string => plural.replace(/ies$/, 'y').replace(/s$/, '')
const plural = (word: string): string => `${word}s`.replace(/ys$/, 'ies')
