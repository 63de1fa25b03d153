export {
  type Caller,
  type Context,
  fromMetadata,
  isStranger,
  ownContext,
  type Positions,
  system,
  toMetadata,
  traceIdOf,
  traceparentOf,
  validTraceparent,
} from './context.js'
export * from './credentials-pushed.js'
export { eachReplica, type OneReplica } from './each-replica.js'
export { contextEnding, endingOf } from './ending.js'
export { EntityServiceService } from './entity-service.js'
export {
  asFault,
  causeText,
  Fault,
  type FaultCause,
  type FaultCode,
  type FieldCause,
  faults,
  fieldOf,
  goTime,
  invalid,
  notFound,
  paused,
  publicText,
  retryAfter,
  toFault,
  toStatus,
  waitText,
} from './fault.js'
export type { AuditedChange, ListChangesRequest, ListChangesResponse } from './gen/overlay/audit/v1/audit.js'
export { AuditServiceService } from './gen/overlay/audit/v1/audit.js'
export type { Change, Changes, Position } from './gen/overlay/change/v1/change.js'
export { ChangeServiceService } from './gen/overlay/change/v1/change.js'
export type {
  ListRequest,
  ListResponse,
  RoleList,
  ViewResponse,
  Written,
} from './gen/overlay/entity/v1/entity.js'
export {
  Perspective,
  Query as ListQuery,
  Selection,
} from './gen/overlay/entity/v1/entity.js'
export type { ApiSession, MarkActivityRequest } from './gen/overlay/identity/v1/identity.js'
export {
  AddAuthenticatorRequest,
  AuthenticateRequest,
  IdentityServiceService,
} from './gen/overlay/identity/v1/identity.js'
export type { ExportedTable, Finding, Findings } from './gen/overlay/maintenance/v1/maintenance.js'
export { MaintenanceServiceService } from './gen/overlay/maintenance/v1/maintenance.js'
export type {
  FinishedLogin,
  LoginState,
  OauthError,
  PresentCodeRequest,
  PresentCredentialRequest,
  StartLoginRequest,
  TokenRequest,
} from './gen/overlay/oidc/v1/oidc.js'
export { OidcServiceService } from './gen/overlay/oidc/v1/oidc.js'
export type { EnrollResponse, IssuedCertificate, RouterCertificates } from './gen/overlay/pki/v1/pki.js'
export { EnrollmentWish, EnrollRequest, PkiServiceService } from './gen/overlay/pki/v1/pki.js'
export {
  Access,
  type AuthorizeResponse,
  type HeaderChanges,
  type HeldAccess,
  PolicyServiceService,
} from './gen/overlay/policy/v1/policy.js'
export type { InspectedValue, NetworkEvent } from './gen/overlay/sessions/v1/sessions.js'
export { SessionsServiceService } from './gen/overlay/sessions/v1/sessions.js'
export type {
  Certificate as ProcessCertificate,
  FollowedSchema,
  PoolConnections,
  ProcessDescription,
  Queue as ProcessQueue,
  RefusedRequest,
  SlowRequest,
} from './gen/overlay/status/v1/status.js'
export { StatusServiceService } from './gen/overlay/status/v1/status.js'
export { type GrpcHealth, openHealth } from './health.js'
export { type HostedService, host, type Observe } from './host.js'
export { MESSAGE_LIMIT_BYTES, onAbort } from './limits.js'
export { openList, type Place } from './list.js'
export { localPeers } from './local-peers.js'
export { type LocalServices, openLocalServices } from './local-services.js'
export * from './methods.js'
export { newestConnections } from './newest-connections.js'
export { type PeerName, peerNameIn, peerNames } from './peer-name.js'
export { openPeerTls, type PeerTls, type PeerTlsOptions } from './peer-tls.js'
export { connectPeers, type Peers, type PeersOptions } from './peers.js'
export { replacePrivateKeys, withoutPrivateKeys } from './private-keys.js'
export { pooledRandom } from './random-pool.js'
export { reflection } from './reflection.js'
export type { Refusal, Refused } from './refusals.js'
export * from './remote.js'
export { type ServeOptions, serve } from './serve.js'
export { serveHealth } from './serve-health.js'
export * from './source-address.js'
export { openTlsDirectory, type TlsDirectory, type TlsDirectoryOptions } from './tls-directory.js'
export type { TlsMaterial } from './tls-material.js'
export * from './tracing.js'
