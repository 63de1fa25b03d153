export type { Refusal, Refused } from './check-caller.js'
export * from './context.js'
export * from './credentials-pushed.js'
export { eachReplica, type OneReplica } from './each-replica.js'
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
export * from './gen/overlay/audit/v1/audit.js'
export * from './gen/overlay/change/v1/change.js'
export * from './gen/overlay/entity/v1/entity.js'
export { Query as ListQuery } from './gen/overlay/entity/v1/entity.js'
export * from './gen/overlay/identity/v1/identity.js'
export * from './gen/overlay/maintenance/v1/maintenance.js'
export * from './gen/overlay/oidc/v1/oidc.js'
export * from './gen/overlay/pki/v1/pki.js'
export * from './gen/overlay/policy/v1/policy.js'
export * from './gen/overlay/sessions/v1/sessions.js'
export type {
  Certificate as ProcessCertificate,
  Queue as ProcessQueue,
} from './gen/overlay/status/v1/status.js'
export * from './gen/overlay/status/v1/status.js'
export { type GrpcHealth, openHealth } from './health.js'
export { type HostedService, host, type Observe, type UnavailableCall } from './host.js'
export { limitConnections } from './limit-connections.js'
export { MESSAGE_LIMIT_BYTES } from './limits.js'
export { localPeers } from './local-peers.js'
export { type LocalServices, openLocalServices } from './local-services.js'
export * from './methods.js'
export { onAbort } from './on-abort.js'
export { type PeerName, peerNameIn, peerNames } from './peer-name.js'
export { openPeerTls, type PeerTls, type PeerTlsOptions } from './peer-tls.js'
export { connectPeers, type Peers, type PeersOptions } from './peers.js'
export { replacePrivateKeys, withoutPrivateKeys } from './private-keys.js'
export { reflection } from './reflection.js'
export * from './remote.js'
export { type ServeOptions, serve } from './serve.js'
export { serveHealth } from './serve-health.js'
export * from './source-address.js'
export { openTlsDirectory, type TlsDirectory, type TlsDirectoryOptions } from './tls-directory.js'
export type { TlsMaterial } from './tls-material.js'
export * from './tracing.js'
